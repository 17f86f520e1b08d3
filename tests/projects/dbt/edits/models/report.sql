select by_code.code, by_code.cents * rates.rate as total
from {{ ref('by_code') }} as by_code
join {{ ref('rates') }} as rates on by_code.code = rates.code
where by_code.cents > 0 and rates.rate > 0
