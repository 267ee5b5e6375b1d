from jqmaster import JQ

jq = JQ()


@jq.job
def add(a: int, b: int) -> int:
    return a + b


if __name__ == "__main__":
    print(add.enqueue(40, 2).result(timeout=10))
