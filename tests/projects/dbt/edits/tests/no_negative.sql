select * from {{ ref('report') }} where total < 0
