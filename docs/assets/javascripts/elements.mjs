// Making elements.

/** An HTML element with its properties, or attributes where a name has a dash. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/-|role/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** An SVG element with its attributes. */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Buttons of which one is pressed: a function that presses the one with a value. */
export function choice(label, options, chosen) {
  const buttons = options.map(([value, text]) => make("button", {
    type: "button", textContent: text, ariaLabel: text, value, onclick: () => chosen(value),
  }));
  const group = { className: "replay-group", role: "group", ariaLabel: label };
  const element = make("div", group, ...buttons);
  const press = (value) => {
    for (const each of buttons) each.ariaPressed = each.value === String(value);
  };
  return { element, press };
}
