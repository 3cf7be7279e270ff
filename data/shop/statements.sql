-- Prices of two categories up by 4 %, to ten cents.
BEGIN;
UPDATE article SET price = round(price * 1.04, 1) WHERE cat_id IN (3, 9) AND NOT discontinued;
COMMIT;

-- Shipped long ago and never returned: points for the buyer.
BEGIN;
UPDATE customer c SET points = points + p.sum
FROM (SELECT customer_no, floor(sum(total) / 100)::int AS sum FROM purchase
      WHERE state = 'shipped' AND placed_at >= '2024-09-01' GROUP BY customer_no) p
WHERE p.customer_no = c.customer_no AND p.sum > 0;
COMMIT;

-- Carts left behind.
BEGIN;
DELETE FROM purchase WHERE state = 'cart' AND placed_at < '2024-01-01';
COMMIT;

-- A new customer buys.
BEGIN;
INSERT INTO customer (mail, full_name, country, born, joined_on, prefs)
VALUES ('  Jo.Berg@Example.COM', 'Jo   Bergström', 'SE', '1991-05-04', '2024-11-18', '{"lang": "sv", "news": true}');
INSERT INTO purchase (customer_no, state, placed_at, total, coupon)
SELECT max(customer_no), 'placed', '2024-11-18 14:03:21+00', 84.30, 'WELCOME' FROM customer;
INSERT INTO purchase_line VALUES (1101, 1, (SELECT min(sku) FROM article), 2, 30.15, NULL),
                                 (1101, 2, (SELECT max(sku) FROM article), 1, 24.00, 5.0);
UPDATE stock.level SET on_hand = on_hand - 2
WHERE depot_code = 'HAM' AND sku = (SELECT sku FROM stock.level WHERE depot_code = 'HAM' AND on_hand > 4 ORDER BY sku LIMIT 1);
COMMIT;

-- Line prices follow the articles, for what is not yet paid.
BEGIN;
UPDATE purchase_line l SET unit_price = a.price
FROM article a, purchase p
WHERE a.sku = l.sku AND p.purchase_id = l.purchase_id AND p.state IN ('cart', 'placed') AND a.price <> l.unit_price;
COMMIT;

-- The dark theme becomes a string.
BEGIN;
UPDATE customer SET prefs = jsonb_set(prefs, '{theme}', CASE WHEN (prefs -> 'theme' ->> 'dark')::boolean
    THEN '"dark"'::jsonb ELSE '"light"'::jsonb END)
WHERE prefs ? 'theme';
COMMIT;

-- Every live article of the first category gets a place in every depot.
BEGIN;
INSERT INTO stock.level (depot_code, sku, on_hand, reorder_at, counted_on)
SELECT d.depot_code, a.sku, 0, 5, '2024-11-18' FROM stock.depot d, article a
WHERE a.cat_id < 4 AND NOT a.discontinued
ORDER BY d.depot_code, a.sku
ON CONFLICT (depot_code, sku) DO NOTHING;
COMMIT;

-- Journal entries of losses are settled and put together.
BEGIN;
WITH gone AS (DELETE FROM stock.movement WHERE reason = 'loss' AND booked < '2024-10-01' RETURNING depot_code, sku, delta)
INSERT INTO stock.movement SELECT depot_code, sku, sum(delta), 'loss, settled', '2024-10-01'
FROM gone GROUP BY depot_code, sku ORDER BY depot_code, sku;
COMMIT;

-- Lines without a gap again.
BEGIN;
DELETE FROM purchase_line WHERE qty = 1 AND unit_price < 5;
UPDATE purchase_line l SET line_no = n.place
FROM (SELECT purchase_id, line_no, row_number() OVER (PARTITION BY purchase_id ORDER BY line_no) AS place FROM purchase_line) n
WHERE n.purchase_id = l.purchase_id AND n.line_no = l.line_no AND n.place <> l.line_no;
UPDATE purchase p SET total = s.total
FROM (SELECT purchase_id, sum(round(qty * unit_price * (1 - coalesce(rebate_pct, 0) / 100), 2)) AS total
      FROM purchase_line GROUP BY purchase_id) s
WHERE s.purchase_id = p.purchase_id AND s.total <> p.total;
COMMIT;

-- Customers asked to be forgotten: no rule.
BEGIN;
DELETE FROM customer WHERE customer_no IN (17, 58, 219, 340, 341, 502, 655);
COMMIT;

-- Labels by what was bought.
BEGIN;
UPDATE customer SET labels = array_append(labels, 'regular')
WHERE (SELECT count(*) FROM purchase p WHERE p.customer_no = customer.customer_no AND state <> 'void') > 5
  AND NOT labels @> '{vip}';
COMMIT;

-- Reviews that shout or link.
BEGIN;
UPDATE review SET hidden = true, body = replace(body, '100%', 'quite') WHERE body LIKE '%100\%%' AND stars < 3;
COMMIT;

-- A category is closed; its articles move up, its children lose their parent.
BEGIN;
UPDATE article SET cat_id = 2, attrs = attrs || '{"moved": true}' WHERE cat_id = 5;
DELETE FROM category WHERE cat_id = 5;
COMMIT;

-- Stock orders for what runs low.
BEGIN;
INSERT INTO stock.movement (depot_code, sku, delta, reason, booked)
SELECT depot_code, sku, reorder_at * 2, 'order', '2024-11-19' FROM stock.level WHERE on_hand < reorder_at AND depot_code <> 'GOT'
ORDER BY depot_code, sku;
UPDATE stock.level SET counted_on = '2024-11-19' WHERE on_hand < reorder_at AND depot_code <> 'GOT';
COMMIT;

-- A delivery.
BEGIN;
INSERT INTO stock.level AS l VALUES ('GOT', (SELECT min(sku) FROM article), 40, 10, '2024-11-19'),
    ('GOT', (SELECT max(sku) FROM article), 12, NULL, '2024-11-19')
ON CONFLICT (depot_code, sku) DO UPDATE SET on_hand = l.on_hand + excluded.on_hand, counted_on = excluded.counted_on;
COMMIT;

-- Paid in the last week goes out the door.
BEGIN;
UPDATE purchase SET state = 'shipped', shipped_at = placed_at + interval '36 hours'
WHERE state = 'paid' AND placed_at BETWEEN '2024-09-15' AND '2024-10-31';
COMMIT;

-- Final sale: half the margin away on old articles that sold nothing this year.
BEGIN;
UPDATE article a SET price = price - round(margin / 2, 2)
WHERE released < '2022-07-01' AND NOT EXISTS (
    SELECT FROM purchase_line l JOIN purchase p USING (purchase_id) WHERE l.sku = a.sku AND p.placed_at >= '2024-01-01');
COMMIT;

-- New skus for one family of articles; what refers to them follows.
BEGIN;
UPDATE article SET sku = 'N' || substr(sku, 2) WHERE sku LIKE 'TEA-%';
COMMIT;
