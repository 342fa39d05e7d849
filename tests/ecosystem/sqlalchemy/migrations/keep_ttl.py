def include_object(thing, name, type_, reflected, compare_to):
    """What ttl_ext has added to a table is in the database, but in no model: it stays."""
    if not reflected or compare_to is not None:
        return True
    if type_ == "column":
        return name not in ("_ts", "ttl")
    if type_ == "index":
        return not name.endswith(("_expiry_key_idx", "_ttl_ext_idx", "__ts_idx"))
    return True
