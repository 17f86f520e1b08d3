with own as (
    select code, cents from {{ ref('orders') }}
)
select own.code, sum(own.cents) as cents, count(*) as items
from own
group by own.code
