"""The types of columns as Spark SQL reads them back."""

import re
from typing import Any

from mergeplan.planner.naming import quote_field

_CHAR = re.compile(r"\bchar\(", re.IGNORECASE)


def char_type(field: Any) -> str:
    """Return the type of a `char`, or one with a `char` in it, else ''.

    Its schema says `string`, but a reader's `c = 'a'` pads the 'a' as well.
    """
    declared = str((field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", ""))
    return declared if _CHAR.search(declared) else ""


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
