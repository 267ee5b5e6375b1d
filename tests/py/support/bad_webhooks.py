"""Wrong webhooks, by the path that the error must name."""

from bad_values import encode


def of_webhooks(invalid, refused):
    """What one field alone does not show."""
    base = {"id": "new", "url": "http://h/"}
    yield invalid("subscribe", "no matcher", "match", encode(base), says="got no bytes")
    yield invalid("subscribe", "a matcher that holds for nothing", "match", encode(base), encode({}))
    yield invalid("subscribe", "a matcher of another word", "match.nam", encode(base), encode({"nam": "a"}))
    yield invalid("subscribe", "no arguments", "spec")
    yield invalid("subscribe", "three arguments", "spec", encode(base), encode({"name": "a"}), b"\xc0")
    for path, on in (("on[0]", ["failed"]), ("on[0]", [5]), ("on[1]", ["done", "done"])):
        yield invalid("subscribe", f"on {on}", path, encode({**base, "on": on}), encode({"name": "a"}))
    for field, value in (("url", "http://h/"), ("on", ["done"])):
        yield invalid("subscribe", f"secrets with {field}", field, encode({"id": "notify", field: value}))
    yield invalid("subscribe", "secrets with a matcher", "match", encode({"id": "notify"}), encode({"name": "a"}))
    many = {"name": [f"a rather long name {number}" for number in range(900)]}
    yield refused("subscribe", "too much of them", "FULL", "match", base, encode(many))
