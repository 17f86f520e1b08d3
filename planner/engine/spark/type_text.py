"""The types of columns as Spark SQL reads them back."""

from typing import Any

from mergeplan.planner.naming import quote_field


def type_text(kind: Any) -> str:
    """Return a type of pyspark as text, like `simpleString`, with odd names of fields in back-ticks."""
    match kind.typeName():
        case "struct":
            fields = (f"{quote_field(field.name)}:{type_text(field.dataType)}" for field in kind.fields)
            return f"struct<{','.join(fields)}>"
        case "array":
            return f"array<{type_text(kind.elementType)}>"
        case "map":
            return f"map<{type_text(kind.keyType)},{type_text(kind.valueType)}>"
        case _:
            return str(kind.simpleString())
