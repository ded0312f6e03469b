"""From answers to lines of text: tables, progress, schemas, differences. Pure."""
