-- Queries over the tables of tables.py, by construct. `t: x` is the value x over the table s.t.

-- lambdas
t: TRANSFORM(arr, x -> x + 1)
t: TRANSFORM(arr, x -> a + x)
t: TRANSFORM(arr, q -> a + 1)
t: TRANSFORM(arr, A -> a + 1)
t: FILTER(arr, q -> a > 1)
t: FILTER(arr, A -> a > 1)
t: TRANSFORM(arr, a -> a + n)
t: TO_JSON((n, s))
t: TO_JSON((n AS k, s))
t: TO_JSON((N, s))
t: TRANSFORM(arr, (x, i) -> x + i)
t: FILTER(arr, x -> x > 1 AND x < a)
t: EXISTS(arr, x -> x = a)
t: FORALL(arr, x -> x IS NULL)
t: AGGREGATE(arr, 0, (x, y) -> x + COALESCE(y, 0), x -> x * 2)
t: REDUCE(arr, 0, (acc, e) -> acc + e)
t: ZIP_WITH(arr, arr, (x, y) -> x + y)
t: MAP_FILTER(m, (k, w) -> w > 1)
t: TRANSFORM_KEYS(m, (k, w) -> UPPER(k))
t: TRANSFORM_VALUES(m, (k, w) -> w + 1)
t: ARRAY_SORT(arr, (l, r) -> CASE WHEN l < r THEN 1 WHEN l > r THEN -1 ELSE 0 END)
t: TRANSFORM(arr, x -> TRANSFORM(arr, y -> x + y))
t: TRANSFORM(arr, st -> st)
t: st.x
t: TRANSFORM(ARRAY(st), e -> e.x)
t: TRANSFORM(ARRAY(st), e -> STRUCT(e.x AS q, e.Y AS r))

-- keyword functions beside columns
k: current_date
k: current_timestamp
k: current_date()
k: current_timestamp()
k: current_user
k: session_user
k: user
k: current_user()
k: session_user()
k: user()
k: localtimestamp
k: current_catalog
k: current_database
k: current_schema
k: localtimestamp()
k: current_catalog()
k: current_database()
k: current_schema()
k: current_time
k: now
k: pi
k: pi()
k: date
k: first
k: key
k: value
k: col
k: pos
t: current_date
t: current_timestamp
t: current_user

-- IN and subqueries
SELECT id FROM s.t WHERE n IN (SELECT n FROM s.o)
SELECT id FROM s.t WHERE n NOT IN (SELECT n FROM s.e)
SELECT id FROM s.t WHERE n IN (1, 2, NULL)
SELECT id FROM s.t WHERE n IN (10)
SELECT id FROM s.t WHERE (n, id) IN ((10, 1), (2, 3))
SELECT id FROM s.t WHERE (n, id) IN (SELECT n, id FROM s.o)
SELECT id FROM s.t WHERE n NOT IN (SELECT MAX(n) FROM s.o)
SELECT id FROM s.t WHERE n = (SELECT MAX(n) FROM s.o)
SELECT id FROM s.t WHERE EXISTS (SELECT 1 FROM s.o WHERE o.id = t.id)
SELECT id FROM s.t WHERE NOT EXISTS (SELECT 1 FROM s.o WHERE o.id = t.id AND o.n > 1)
SELECT id, (SELECT MAX(o.n) FROM s.o WHERE o.id = t.id) AS v FROM s.t
SELECT id FROM s.t WHERE n > ANY (SELECT n FROM s.o)

-- predicates
SELECT id FROM s.t WHERE s LIKE 'a%' OR s ILIKE 'B_' OR s RLIKE 'x+'
SELECT id FROM s.t WHERE s LIKE ANY ('a%', 'b%') AND u NOT LIKE ALL ('x', 'y')
SELECT id FROM s.t WHERE s LIKE 'a!%' ESCAPE '!'
SELECT id FROM s.t WHERE NOT s LIKE 'a%'
SELECT id FROM s.t WHERE s REGEXP 'a'
SELECT id FROM s.t WHERE n BETWEEN 1 AND 10 AND NOT id = 2
SELECT id FROM s.t WHERE n NOT BETWEEN 1 AND 10 OR b
SELECT id FROM s.t WHERE b IS TRUE
SELECT id FROM s.t WHERE b IS NOT TRUE AND n IS NOT NULL
SELECT id FROM s.t WHERE b IS UNKNOWN
SELECT id FROM s.t WHERE n IS DISTINCT FROM id
SELECT id FROM s.t WHERE n <=> id AND s == u AND n <> 1 AND n != 2

-- operators
t: NOT n = 1
t: NOT b
t: ! b
t: n = id = b
t: 1 + 2 || '3'
t: s || n + 1
t: n & 3 | id ^ 2
t: ~n
t: n << 1
t: n >> 1
t: n >>> 1
t: - n
t: + n
t: -(-n)
t: 5 - -n
t: n / 2
t: n DIV 2
t: n % 2
t: MOD(n, 2)
t: p * 1
t: p + 1.5
t: p * 2L
t: p / 3

-- numbers
t: 1
t: 1L
t: 1S
t: 1Y
t: 1.0
t: 1.0D
t: 1F
t: 1BD
t: 1e3
t: 1E-2
t: .5
t: 5.
t: 1e2BD
t: 2147483648
t: -2147483648
t: 9223372036854775807
t: -9223372036854775808
t: 9223372036854775808

-- texts
t: 'it''s'
t: "it's"
t: 'a\'b'
t: r'a\nb'
t: 'a\nb'
t: 'a' 'b'
t: 'a\\b'
t: '\u0041'
t: '\101'
t: 'a\%b'
t: '\_'
t: X'1F'
t: x'1f'
t: X"00"

-- dates and times
t: DATE '2026-01-01'
t: TIMESTAMP '2026-01-01 00:00:00'
t: TIMESTAMP_NTZ '2026-01-01 00:00:00'
t: TIMESTAMP_LTZ '2026-01-01 00:00:00'
t: DATE('2026-01-01')
t: DATE 'today'
t: DATE'2026-1-1'
t: TIMESTAMP'2026-01-01'
t: TIME '10:00:00'

-- intervals
t: INTERVAL '1' DAY
t: INTERVAL 1 DAY
t: INTERVAL '1 day'
t: INTERVAL '30 days' + INTERVAL '-2 hours'
t: d + INTERVAL '2 months'
t: INTERVAL -1 DAY
t: INTERVAL '1-2' YEAR TO MONTH
t: INTERVAL '1 02:03:04' DAY TO SECOND
t: d + INTERVAL 1 MONTH
t: d - INTERVAL 1 DAY
t: ts + INTERVAL '1' HOUR
t: d + 1
t: d - d
t: INTERVAL 1 YEAR 2 MONTHS
t: INTERVAL 3 WEEKS
t: INTERVAL 1.5 SECONDS
t: INTERVAL '1' MONTH
t: INTERVAL '1' MINUTE

-- casts
t: CAST(s AS INT)
t: TRY_CAST(s AS INT)
t: s::INT
t: INT(s)
t: CAST(n AS STRING)
t: STRING(n)
t: CAST(p AS DECIMAL)
t: CAST(p AS DECIMAL(10))
t: CAST(p AS DEC(10,0))
t: CAST(p AS NUMERIC(10,1))
t: CAST(n AS BIGINT)
t: CAST(n AS LONG)
t: CAST(n AS SHORT)
t: CAST(n AS TINYINT)
t: CAST(n AS BYTE)
t: CAST(n AS REAL)
t: CAST(ts AS TIMESTAMP_NTZ)
t: CAST(ts AS TIMESTAMP)
t: CAST(ts AS TIMESTAMP_LTZ)
t: CAST(ts AS DATE)
t: CAST(s AS VARCHAR(3))
t: CAST(s AS CHAR(3)) || s::varchar(20)
t: CAST(s AS CHAR(3))
t: CAST(s AS STRING)
t: CAST(st AS STRUCT<x: BIGINT, Y: STRING>)
t: CAST(st AS STRUCT<X: BIGINT, y: STRING>)
t: CAST(arr AS ARRAY<BIGINT>)
t: CAST(m AS MAP<STRING, BIGINT>)

-- structs, maps and arrays
t: st.Y
t: st.y
t: t.st.X
t: m['a']
t: m['B']
t: m['b']
t: arr[0]
t: arr[n]
t: m.a
t: m.B
t: ARRAY(1, 2)[0]
t: MAP('a', 1)['a']
t: NAMED_STRUCT('q', 1).q
t: STRUCT(1 AS k).k
t: STRUCT(n, s)
t: NAMED_STRUCT('n', n, 's', s)
t: STRUCT(n AS N, s)
o: TO_JSON(STRUCT(n, s AS S))
o: TO_JSON(STRUCT(*))
t: TO_JSON(STRUCT(N, s))
t: TO_JSON(NAMED_STRUCT('A', n))
SELECT TO_JSON(st) AS v, st.* FROM s.t
t: (n, s)
t: (n)
t: ROW(n, s)

-- conditions
t: CASE n WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END
t: CASE WHEN b THEN 1 END
t: IF(b, 1, 2)
t: IFF(b, 1, 2)
t: IF(b, 1, 2.0)
t: NVL(n, 0)
t: IFNULL(n, 0)
t: COALESCE(n, 0L)
t: NVL2(n, 1, 2)
t: NULLIF(n, 1)
t: GREATEST(n, id)
t: LEAST(n, id, 1)
t: ISNULL(n)
t: ISNOTNULL(n)
t: ISNAN(f)
t: NANVL(f, 1)

-- aggregates
t: COUNT(*)
t: COUNT(n)
t: COUNT(1)
t: COUNT(DISTINCT n)
t: COUNT(n, id)
t: COUNT(DISTINCT n, id)
t: COUNT(t.*)
o: COUNT(NULL)
o: COUNT()
t: SUM(n)
t: SUM(DISTINCT n)
t: SUM(ALL n)
t: AVG(n)
t: MEAN(n)
t: SUM(n) FILTER (WHERE n > 1)
t: COUNT_IF(n > 1)
t: FIRST(n)
t: FIRST_VALUE(n)
t: LAST(n, TRUE)
t: FIRST(n) IGNORE NULLS
t: ANY_VALUE(n)
t: MIN(s)
t: MAX(s)
t: MIN_BY(s, n)
t: MAX_BY(s, n)
t: STDDEV(n)
t: STDDEV_POP(n)
t: STD(n)
t: VARIANCE(n)
t: VAR_POP(n)
t: VAR_SAMP(n)
t: BOOL_AND(b)
t: EVERY(b)
t: SOME(b)
t: ANY(b)
t: BOOL_OR(b)
t: APPROX_COUNT_DISTINCT(n)
t: APPROX_PERCENTILE(n, 0.5)
t: PERCENTILE_APPROX(n, 0.5)
t: PERCENTILE(n, 0.5)
t: PERCENTILE(n, 0.5, id)
t: MEDIAN(n)
t: MODE(n)
t: PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n)
t: PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY n DESC)
t: LISTAGG(s, ',') WITHIN GROUP (ORDER BY s)
t: STRING_AGG(s, ',') WITHIN GROUP (ORDER BY s DESC)
t: SORT_ARRAY(COLLECT_LIST(n))
t: SORT_ARRAY(COLLECT_SET(n))
t: SORT_ARRAY(ARRAY_AGG(n))
t: ARRAY_SORT(COLLECT_LIST(n))

-- groups
SELECT id, COUNT(*) AS v FROM s.t GROUP BY id HAVING COUNT(*) > 1
SELECT id AS k, COUNT(*) AS v FROM s.t GROUP BY k
SELECT id AS n, COUNT(*) AS v FROM s.t GROUP BY n
SELECT n + 1 AS id, COUNT(*) AS v FROM s.t GROUP BY id, n
SELECT id, n, COUNT(*) AS v FROM s.t GROUP BY 1, 2
SELECT id, n, COUNT(*) AS v, GROUPING(id) AS g, GROUPING_ID(id, n) AS h FROM s.t GROUP BY id, n WITH ROLLUP
SELECT id, n, COUNT(*) AS v FROM s.t GROUP BY ROLLUP (id, n)
SELECT id, n, COUNT(*) AS v FROM s.t GROUP BY CUBE (id, n)
SELECT id, n, COUNT(*) AS v FROM s.t GROUP BY GROUPING SETS ((id, n), id, ())
SELECT id, n, COUNT(*) AS v FROM s.t GROUP BY id, n GROUPING SETS ((id), (n))
SELECT id, COUNT(*) AS v FROM s.t GROUP BY ALL
SELECT id, MAX(n) AS n FROM s.t GROUP BY id HAVING n > 1
SELECT id, MAX(n) AS mx FROM s.t GROUP BY id HAVING MAX(n) > 1 AND mx < 100
SELECT DISTINCT id, n FROM s.t
SELECT ALL id, n FROM s.t

-- windows
SELECT id, ROW_NUMBER() OVER (PARTITION BY n ORDER BY id, s DESC NULLS LAST, f) AS v FROM s.t
SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY d) AS v, SUM(n) OVER (ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM s.o
SELECT id, SUM(n) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS v FROM s.o
SELECT id, SUM(n) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS v, SUM(n) OVER () AS w FROM s.o
SELECT id, LAG(n) OVER (ORDER BY id) AS v, LEAD(n, 2, 0) OVER (ORDER BY id) AS w, FIRST_VALUE(n) OVER (ORDER BY id) AS z, NTH_VALUE(n, 2) OVER (ORDER BY id) AS q FROM s.o
SELECT id, LAG(n) IGNORE NULLS OVER (ORDER BY id) AS v, LAST_VALUE(n) RESPECT NULLS OVER (ORDER BY id) AS w FROM s.o
SELECT id, RANK() OVER w AS v, DENSE_RANK() OVER w AS q FROM s.o WINDOW w AS (PARTITION BY s ORDER BY n)
SELECT id, NTILE(2) OVER (ORDER BY id) AS v, PERCENT_RANK() OVER (ORDER BY id) AS w, CUME_DIST() OVER (ORDER BY id) AS z FROM s.o
SELECT id FROM s.t QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY n, s) = 1

-- joins
SELECT t.id, o.n FROM s.t JOIN s.o ON t.id = o.id
SELECT t.id, o.n FROM s.t INNER JOIN s.o ON t.id = o.id
SELECT t.id, o.n FROM s.t LEFT JOIN s.o ON t.id = o.id AND o.n > 5
SELECT t.id, o.n FROM s.t LEFT OUTER JOIN s.o ON t.id = o.id WHERE o.n > 5
SELECT t.id, o.n FROM s.t RIGHT JOIN s.o ON t.id = o.id
SELECT t.id, o.n FROM s.t FULL OUTER JOIN s.o ON t.id = o.id
SELECT t.id, o.n FROM s.t CROSS JOIN s.o
SELECT t.id, o.n FROM s.t, s.o
SELECT t.id, o.n FROM s.t, s.o WHERE t.id = o.id
SELECT t.id FROM s.t LEFT SEMI JOIN s.o ON t.id = o.id
SELECT t.id FROM s.t SEMI JOIN s.o ON t.id = o.id
SELECT t.id FROM s.t LEFT ANTI JOIN s.o ON t.id = o.id
SELECT t.id FROM s.t ANTI JOIN s.o USING (id)
SELECT id, o.d AS v FROM s.t JOIN s.o USING (id)
SELECT id, n, s, d FROM s.o NATURAL JOIN s.e
SELECT id, o.n AS v FROM s.o NATURAL LEFT JOIN s.e
SELECT id, o.n AS v, e.n AS w FROM s.o FULL JOIN s.e USING (id)
SELECT id FROM s.o RIGHT JOIN s.e USING (id) WHERE o.id IS NULL
SELECT * FROM s.o JOIN s.e USING (id, n)
SELECT o.*, e.n AS v FROM s.o JOIN s.e ON o.id = e.id
SELECT a1.id, b1.id AS v, c1.id AS w FROM s.o AS a1 LEFT JOIN (s.e AS b1 JOIN s.o AS c1 ON b1.id = c1.id) ON a1.id = b1.id
SELECT a1.id, b1.id AS v, c1.id AS w FROM s.o a1 LEFT JOIN s.e b1 JOIN s.o c1 ON b1.id = c1.id ON a1.id = b1.id
SELECT t.id, o.n FROM s.t, s.o WHERE t.id = o.id
SELECT t.id, q.n, e.id AS v FROM s.t, (SELECT id, n FROM s.o) AS q LEFT JOIN s.e ON e.id = t.id
SELECT t.id, o.n, e.id AS v FROM s.t, s.o RIGHT JOIN s.e ON e.id = o.id
SELECT t.id, o.n FROM s.t LEFT JOIN s.e ON e.id = t.id, s.o
SELECT t.id, o.n FROM s.t LEFT JOIN s.o

-- lateral joins and generators
SELECT o.id, z.v FROM s.o, LATERAL (SELECT e.n + o.n AS v FROM s.e WHERE e.id = o.id) AS z
SELECT o.id, z.v FROM s.o LEFT JOIN LATERAL (SELECT MAX(e.n) AS v FROM s.e WHERE e.id = o.id) AS z ON TRUE
SELECT id, e FROM s.t LATERAL VIEW EXPLODE(arr) q AS e
SELECT id, e FROM s.t LATERAL VIEW OUTER EXPLODE(arr) q AS e
SELECT id, p1, e FROM s.t LATERAL VIEW POSEXPLODE(arr) q AS p1, e
SELECT id, k1, v1 FROM s.t LATERAL VIEW EXPLODE(m) q AS k1, v1
SELECT id, EXPLODE(arr) AS e FROM s.t
SELECT id, EXPLODE_OUTER(arr) AS e FROM s.t
SELECT id, POSEXPLODE(arr) AS (p1, e) FROM s.t
SELECT id, EXPLODE(m) AS (k1, v1) FROM s.t
SELECT id, INLINE(ARRAY(STRUCT(n AS c1, s AS c2))) AS (c1, c2) FROM s.t
SELECT id, STACK(2, n, id, 1, 2) AS (c1, c2) FROM s.t
SELECT t.id, z.col AS v FROM s.t, LATERAL EXPLODE(arr) AS z
SELECT t.id, z.e AS v FROM s.t, LATERAL EXPLODE(arr) AS z(e)
SELECT id, k1, k2 FROM s.t LATERAL VIEW EXPLODE(arr) q AS k1 LATERAL VIEW EXPLODE(arr) r AS k2

SELECT t.id, o.n, z.e AS v FROM s.t, s.o LATERAL VIEW EXPLODE(t.arr) z AS e

-- table functions and VALUES
SELECT id FROM RANGE(5)
SELECT id FROM RANGE(1, 5, 2)
SELECT col1, col2 FROM VALUES (1, 'a'), (2, NULL)
SELECT c1, c2 FROM VALUES (1, 'a'), (2, NULL) AS v(c1, c2)
SELECT c1 FROM (VALUES 1, 2.0, 3L) AS v(c1)

-- set operations
SELECT id FROM s.o UNION SELECT id FROM s.e
SELECT id FROM s.o UNION ALL SELECT id FROM s.e
SELECT id FROM s.o UNION DISTINCT SELECT n FROM s.o
SELECT id FROM s.o EXCEPT SELECT n FROM s.o
SELECT id FROM s.o EXCEPT ALL SELECT n FROM s.o
SELECT id FROM s.o MINUS SELECT n FROM s.o
SELECT id FROM s.o INTERSECT SELECT n FROM s.o
SELECT id FROM s.o INTERSECT ALL SELECT n FROM s.o
SELECT id FROM s.o UNION SELECT n FROM s.o INTERSECT SELECT id FROM s.e
SELECT id FROM s.o UNION ALL SELECT n FROM s.o UNION SELECT id FROM s.o
SELECT id FROM s.o EXCEPT SELECT n FROM s.o EXCEPT SELECT id FROM s.e
SELECT id FROM s.o UNION ALL SELECT n FROM s.o ORDER BY id LIMIT 3
(SELECT id FROM s.o ORDER BY id LIMIT 1) UNION ALL (SELECT n FROM s.o ORDER BY n LIMIT 1)
SELECT id, n FROM s.o UNION ALL BY NAME SELECT n, id FROM s.e

-- ORDER BY and LIMIT
SELECT id FROM s.o ORDER BY id DESC NULLS FIRST LIMIT 2 OFFSET 1
SELECT id, n FROM s.o ORDER BY 2, 1 LIMIT 3
SELECT id, n AS q FROM s.o ORDER BY q LIMIT 3
SELECT n AS id, id AS n FROM s.o ORDER BY id LIMIT 3
SELECT id FROM s.o SORT BY id
SELECT id FROM s.o DISTRIBUTE BY id SORT BY n
SELECT id FROM s.o CLUSTER BY id
SELECT id FROM s.o LIMIT ALL
SELECT id FROM s.o ORDER BY ALL LIMIT 2

-- CTEs
WITH c AS (SELECT id, n FROM s.o) SELECT id FROM c WHERE n > 5
WITH c(k1, k2) AS (SELECT id, n FROM s.o) SELECT k1 FROM c WHERE k2 > 5
WITH o AS (SELECT 1 AS id) SELECT id FROM o
WITH c AS (SELECT id FROM s.o), d AS (SELECT id FROM c) SELECT c.id FROM c JOIN d ON c.id = d.id
WITH c AS (SELECT 1 AS v), d AS (WITH c AS (SELECT 2 AS v) SELECT v FROM c) SELECT d.v, c.v AS w FROM c, d
WITH RECURSIVE r(k1) AS (SELECT 1 UNION ALL SELECT k1 + 1 FROM r WHERE k1 < 3) SELECT k1 FROM r

-- names and aliases
SELECT z.id FROM (SELECT id FROM s.o) AS z
SELECT z.id FROM (SELECT id FROM s.o) z
SELECT k1 FROM (SELECT id, n FROM s.o) AS z(k1, k2)
SELECT k1 FROM s.o AS z(k1, k2, k3, k4)
SELECT T.ID, t.N FROM s.t AS T
SELECT `id`, t.`n` FROM `s`.`t`
SELECT s.t.id FROM s.t
SELECT id a1, n b1 FROM s.t z
t: n + 1
t: q * 2
t: id * 2
t: x + 1

-- stars, PIVOT, UNPIVOT, samples
SELECT * EXCEPT (s, d) FROM s.o
SELECT * FROM s.o PIVOT (SUM(n) AS sm FOR s IN ('a' AS aa, 'B' AS bb))
SELECT * FROM (SELECT id, n, s FROM s.o) PIVOT (SUM(n) FOR s IN ('a', 'B'))
SELECT aa, bb FROM s.t, (SELECT n AS m, s AS q FROM s.o) o PIVOT (SUM(m) AS sm FOR q IN ('a' AS aa, 'B' AS bb))
SELECT * FROM (SELECT id, n, s FROM s.o) PIVOT (COUNT(n) > 0 FOR s IN ('a', 'B'))
SELECT * FROM (SELECT id, n, s FROM s.o) PIVOT (SUM(n) - MIN(n) AS sm, (MAX(n)) AS mx FOR s IN ('a' AS aa, 'B' AS bb))
SELECT * FROM (SELECT id, n FROM s.o) UNPIVOT (val FOR nm IN (id, n))
SELECT * FROM (SELECT id, n FROM s.o) UNPIVOT INCLUDE NULLS (val FOR nm IN (id AS i1, n AS n1))
SELECT id FROM s.o TABLESAMPLE (100 PERCENT)
SELECT id FROM s.o TABLESAMPLE (2 ROWS)

-- FROM first and pipes
FROM s.o SELECT id WHERE n > 5
FROM s.o |> WHERE n > 5 |> SELECT id, n
FROM s.o |> AGGREGATE SUM(n) AS v GROUP BY id
FROM s.o |> EXTEND n + 1 AS q |> SELECT id, q
FROM s.o |> SET n = n + 1
FROM s.o |> DROP d
FROM s.o |> AS z |> SELECT z.id
FROM s.o |> ORDER BY id |> LIMIT 2
FROM s.o |> JOIN s.e USING (id) |> SELECT id
FROM s.o |> UNION ALL (SELECT * FROM s.e)

-- functions of dates
t: EXTRACT(YEAR FROM d)
t: DATE_PART('YEAR', d)
t: YEAR(d)
t: DATEPART('year', d)
t: EXTRACT(WEEK FROM d)
t: EXTRACT(DOW FROM d)
t: EXTRACT(DAYOFWEEK FROM d)
t: EXTRACT(DOW_ISO FROM d)
t: DAYOFWEEK(d)
t: WEEKDAY(d)
t: DATE_ADD(d, 1)
t: DATEADD(DAY, 1, d)
t: DATE_SUB(d, 1)
t: ADD_MONTHS(d, 1)
t: DATEADD(MONTH, 1, d)
t: DATEDIFF(d, d)
t: DATEDIFF(DAY, d, ts)
t: DATE_DIFF(d, d)
t: TIMESTAMPDIFF(MONTH, d, ts)
t: MONTHS_BETWEEN(d, ts)
t: DATE_TRUNC('MONTH', ts)
t: TRUNC(d, 'MM')
t: DATE_TRUNC('month', d)
t: DATE_FORMAT(ts, 'yyyy-MM')
t: TO_DATE(s, 'yyyy')
t: TO_DATE(s)
t: TO_TIMESTAMP('2026-01-01')
t: TO_TIMESTAMP_NTZ('2026-01-01')
t: TO_TIMESTAMP('01/02/2026', 'dd/MM/yyyy')
t: TRY_TO_TIMESTAMP('x')
t: UNIX_TIMESTAMP(ts)
t: TO_UNIX_TIMESTAMP(ts)
t: FROM_UNIXTIME(n)
t: UNIX_SECONDS(ts)

-- functions of texts
t: TRIM(s)
t: TRIM(BOTH 'a' FROM s)
t: LTRIM(s)
t: TRIM(LEADING 'a' FROM s)
t: BTRIM(s)
t: TRIM('a' FROM s)
t: LTRIM('a', s)
t: SUBSTRING(s, 1, 2)
t: SUBSTR(s, 1, 2)
t: SUBSTRING(s FROM 1 FOR 2)
t: LEFT(s, 2)
t: RIGHT(s, 2)
t: POSITION('a' IN s)
t: LOCATE('a', s)
t: INSTR(s, 'a')
t: CHARINDEX('a', s)
t: LOCATE('a', s, 2)
t: OVERLAY(s PLACING 'x' FROM 1)
t: OVERLAY(s PLACING 'x' FROM 1 FOR 0)
t: OVERLAY(s, 'x', 1)
t: CONCAT(s, u)
t: s || u
t: CONCAT_WS(',', s, u)
t: CONCAT(s)
t: REPLACE(s, 'a', 'b')
t: REPLACE(s, 'a')
t: TRANSLATE(s, 'ab', 'x')
t: REGEXP_REPLACE(s, 'a', 'b')
t: REGEXP_EXTRACT(s, '(a)', 1)
t: REGEXP_EXTRACT(s, '(a)')
t: REGEXP_EXTRACT(s, '(a)', 0)
t: SPLIT(s, ',')
t: SPLIT(s, ',', 2)
t: SPLIT(s, ',', -1)
t: SPLIT_PART(s, ',', 1)
t: LPAD(s, 5, ' ')
t: LPAD(s, 5)
t: RPAD(s, 5, 'x')
t: REPEAT(s, 2)
t: SPACE(2)
t: LENGTH(s)
t: CHAR_LENGTH(s)
t: LEN(s)
t: OCTET_LENGTH(s)
t: BIT_LENGTH(s)

-- functions of numbers
t: ROUND(f)
t: ROUND(f, 0)
t: BROUND(f)
t: CEIL(f)
t: CEILING(f)
t: FLOOR(f)
t: CEIL(f, 0)
t: ROUND(p, 1)
t: LOG(f)
t: LN(f)
t: LOG(2, f)
t: LOG10(f)
t: LOG2(f)
t: LOG1P(f)
t: POW(n, 2)
t: POWER(n, 2)
t: n ^ 2
t: SQRT(n)
t: CBRT(n)
t: SIGN(n)
t: SIGNUM(n)
t: ABS(n)

-- functions of arrays, maps and JSON
t: SIZE(arr)
t: CARDINALITY(arr)
t: ARRAY_SIZE(arr)
t: ARRAY_CONTAINS(arr, 1)
t: ELEMENT_AT(arr, 1)
t: TRY_ELEMENT_AT(arr, 1)
t: GET(arr, 0)
t: SORT_ARRAY(arr)
t: SORT_ARRAY(arr, FALSE)
t: ARRAY_SORT(arr)
t: ARRAY_DISTINCT(arr)
t: ARRAY_MIN(arr)
t: SLICE(arr, 1, 2)
t: FLATTEN(ARRAY(arr))
t: ARRAY_JOIN(words, ',')
t: MAP_KEYS(m)
t: MAP_FROM_ARRAYS(words, words)
t: STR_TO_MAP(s)
t: STR_TO_MAP(s, ',', ':')
t: MAP_CONCAT(m, m)
t: MAP_ENTRIES(m)
t: SEQUENCE(1, 5)
t: SEQUENCE(1, 5, 2)
t: ARRAY_REPEAT(n, 2)
t: ARRAYS_ZIP(arr, words)
t: GET_JSON_OBJECT(s, '$.a')
t: FROM_JSON(s, 'a INT, B STRING')
t: JSON_TUPLE(s, 'a')
t: FROM_JSON(s, 'a INT').a
t: TO_JSON(m)
t: SCHEMA_OF_JSON('{"a": 1}')

-- other functions
t: HASH(n, s)
t: XXHASH64(n)
t: MD5(s)
t: SHA(s)
t: SHA1(s)
t: SHA2(s, 256)
t: CRC32(s)
t: HEX(n)
t: UNHEX(s)
t: BIN(n)
t: CONV(s, 10, 16)
t: ASCII(s)
t: CHR(65)
t: CHAR(65)
t: BASE64(s)
t: BIT_AND(n)
t: BIT_OR(n)
t: BIT_XOR(n)
t: BIT_COUNT(1)
t: UPPER(s)
t: UCASE(s)
t: LOWER(s)
t: LCASE(s)
t: INITCAP(s)
t: REVERSE(s)
t: SOUNDEX(s)
t: LEVENSHTEIN(s, u)
t: s COLLATE UTF8_LCASE = u
t: COLLATION(s)
t: TYPEOF(n)
t: ASSERT_TRUE(b)
t: MAKE_DATE(2026, 1, 1)
t: MAKE_TIMESTAMP(2026, 1, 1, 0, 0, 0)
t: MAKE_INTERVAL(1)
t: LAST_DAY(d)
t: NEXT_DAY(d, 'MON')
SELECT WINDOW(ts, '1 day').start AS v, COUNT(*) AS w FROM s.t GROUP BY WINDOW(ts, '1 day')
t: MASK(s)
t: MASK(s, lowerChar => 'q')
t: MASK(s, 'X', 'q')

-- whole queries
SELECT COUNT(*) AS v FROM s.o HAVING COUNT(*) > 1
SELECT id, n FROM s.o WHERE n > 1 AND id IS NOT NULL OR s = 'a' AND NOT d IS NULL
SELECT id FROM s.o o1 WHERE n > (SELECT AVG(n) FROM s.o o2 WHERE o2.s = o1.s)
o: SUM(n) OVER (PARTITION BY s) / COUNT(*) OVER (PARTITION BY s)
SELECT /*+ BROADCAST(o) */ o.id FROM s.o JOIN s.e ON o.id = e.id
SELECT /*+ COALESCE(1) */ id FROM s.o
SELECT id /* c */ FROM s.o WHERE n > 1
o: CURRENT_DATE - 1
o: CURRENT_DATE
t: TRUE
t: FALSE
t: NULL
t: true
o: PARSE_JSON('{"a":1}')
o: PARSE_JSON('{"a":1}'):a
o: VARIANT_GET(PARSE_JSON('{"a":1}'), '$.a', 'int')
o: TRY_PARSE_JSON(s):A::STRING
SELECT id, n FROM s.o WHERE (id, n) = (1, 10)
SELECT id FROM s.o WHERE id = 1 OR (n = 1 AND (s = 'a' OR d IS NULL))
SELECT o.id, COUNT(*) AS v FROM s.o AS o GROUP BY o.id, o.n
SELECT DISTINCT id, COUNT(*) OVER () AS v FROM s.o
t: TRY_ADD(n, 1)
t: TRY_DIVIDE(n, 0)
t: TRY_SUBTRACT(n, 1)
t: TRY_MULTIPLY(n, 2)
t: n::BIGINT + 1::SMALLINT
t: -1::STRING
t: n::STRING || 'x'
t: 1 IN (1, 2)
t: NULL IN (1)
t: n IN (1, 2) = b
t: n IS NULL = b
t: NOT n IS NULL AND b
t: n BETWEEN 1 AND 2 = b
t: CASE WHEN n > 1 THEN 'x' ELSE NULL END || s
t: ELT(1, s, u)
t: FIELD(s, 'a')
t: FIND_IN_SET(s, 'a,b')
t: FORMAT_NUMBER(n, 2)
t: FORMAT_STRING('%s', s)
t: PRINTF('%s', s)
t: STARTSWITH(s, 'a')
t: ENDSWITH(s, 'a')
t: CONTAINS(s, 'a')
t: EXPLODE(SEQUENCE(1, 3))
SELECT GROUPING__ID AS g, id FROM s.o GROUP BY id WITH CUBE
SELECT id, RANK() OVER (DISTRIBUTE BY s SORT BY n) AS v FROM s.o
SELECT id, SUM(n) OVER (CLUSTER BY s) AS v FROM s.o
o: MAX(STRUCT(n, s)).s
o: MAX((n, s)).col1
o: SUM(n + id)
o: SUM(n) + SUM(id)
SELECT id, z.k1, z.v1 FROM s.t LATERAL VIEW OUTER EXPLODE(m) z AS k1, v1
SELECT st.x, st.Y FROM s.t WHERE st.Y = 'a'
SELECT z.st.x AS v FROM s.t AS z
SELECT st.x FROM (SELECT st FROM s.t) AS st
SELECT t.* FROM s.o AS t
t: `t`.`st`.`x`
t: ARRAY(st)[0].x
t: ARRAY(st).x
