{{ config(post_hook="analyze table {{ this }} compute statistics") }}
select daily.day, sum(daily.cents * rates.rate) as cents, count(*) as items
from {{ ref('daily') }} as daily
join {{ ref('rates') }} as rates on daily.code = rates.code
group by daily.day
