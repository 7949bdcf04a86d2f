"""Documentation whose code blocks ran: records, badges, computed diffs, checks."""
