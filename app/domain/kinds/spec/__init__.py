"""The specs of all kinds: their base class, the report of all errors at once, older spellings, and the schema."""
