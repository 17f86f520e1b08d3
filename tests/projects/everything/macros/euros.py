from sqlmesh import macro


@macro()
def euros(evaluator, cents: str):
    return f"CAST({cents} / 100 AS DECIMAL(10, 2))"
