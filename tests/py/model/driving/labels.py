"""Jobs and workers by label: ids are the engine's to give."""

UNKNOWN = {"job": "00000000000001", "worker": "w00000000000001"}
NEVER = {"job:never": "fffffffffffff0"}  # later than any id there is


class Labels:
    """Needs `names`, label -> id, and a `model`."""

    def name(self, script, label, reply):
        """What an operation made."""
        if label is None:
            return
        if script == "enqueue":
            self.names |= {f"job:{label}.{i}": id for i, (id, _) in enumerate(reply)}
        elif script == "finish":
            follow = [pair for answer in reply[0] if isinstance(answer, list) for pair in answer[1:]]
            self.names |= {f"job:{label}.{i}": id for i, (id, _) in enumerate(follow)}
        elif script == "register":
            self.names[f"worker:{label}"] = reply

    def resolve(self, value):
        """Labels replaced by ids and tokens."""
        if isinstance(value, dict):
            found = {k: self.resolve(v) for k, v in value.items() if k != "token"}
            if "token" in value:
                found["token"] = self.token(found["id"], value["token"])
            if "jobs" in value and "worker" in value:
                found["jobs"] = [
                    [id, self.token(id, said), *rest]
                    for (id, *_), (_, said, *rest) in zip(found["jobs"], value["jobs"], strict=True)
                ]
            return found
        if isinstance(value, list):
            return [self.resolve(v) for v in value]
        if isinstance(value, str) and value.startswith(("job:", "worker:")):
            return self.names.get(value, UNKNOWN[value.split(":")[0]])
        return value

    def token(self, id, said):
        """`3`: what attempt 3 of this job was given; `forged:3`: that with another digit; `bare:3`: without
        any; `job:5.0`: the last one of another job."""
        if isinstance(said, str) and said.startswith("job:"):
            other = self.model.jobs.get(self.names.get(said))
            return (other and other.token) or "1-000000000000"
        kind, number = said.split(":") if isinstance(said, str) else ("given", said)
        token = self.model.life.tokens.get((id, int(number)), f"{number}-000000000000")
        if kind == "forged":
            return token[:-1] + ("1" if token[-1] == "0" else "0")
        return f"{number}-" if kind == "bare" else token
