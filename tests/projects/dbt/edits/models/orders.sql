select id, day, code, cents, '{{ var("label") }}' as label
from {{ ref('stg_items') }}
