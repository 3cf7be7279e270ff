-- What is out of warranty and failing is retired.
BEGIN;
UPDATE appliance SET phase = 'retired' WHERE phase = 'failing' AND upper(warranty) < '2024-06-01';
COMMIT;

-- Ports of retired appliances go dark and leave their VLANs.
BEGIN;
UPDATE port p SET enabled = false, vlans = '{}' FROM appliance a
WHERE a.appliance_id = p.appliance_id AND a.phase = 'retired' AND (p.enabled OR p.vlans <> '{}');
COMMIT;

-- Jumbo frames on fast fibre.
BEGIN;
UPDATE port SET mtu = 9000 WHERE kind = 'fibre' AND speed_mbit >= 10000 AND mtu IS DISTINCT FROM 9000;
COMMIT;

-- Leases that ran out.
BEGIN;
DELETE FROM address WHERE leased_until < '2025-01-01' AND NOT floating;
COMMIT;

-- A box is mounted.
BEGIN;
INSERT INTO appliance (hostname, model_id, area_id, row_letter, cabinet_no, lowest_unit, phase, serial_no, bought, warranty, extra)
VALUES ('sw-umbrella-361', 7, 12, 'A', 1, 17, 'staged', '00C0FFEE', '2025-01-20', '[2025-01-20,2028-01-20)', '{"owner": "edge", "asset": "A-5083"}');
INSERT INTO port (appliance_id, label, kind, speed_mbit, mac, vlans)
SELECT 361, 'eth-0/' || n, 'copper', 1000, macaddr '02:1e:57:aa:00:00', ARRAY[100, 110] FROM generate_series(0, 11) n;
UPDATE appliance SET managed_at = '10.1.14.99' WHERE appliance_id = 361;
INSERT INTO address (ip, subnet_id, port_id, dns) SELECT '10.1.13.61/25', 13, max(port_id), 'umbrella.net.example' FROM port;
COMMIT;

-- VLAN 104 becomes 204.
BEGIN;
UPDATE port SET vlans = array_replace(vlans, 104, 204) WHERE 104 = ANY (vlans);
UPDATE subnet SET vlan = 204 WHERE vlan = 104;
COMMIT;

-- Names for addresses of named boxes.
BEGIN;
UPDATE address d SET dns = a.hostname || '.' || lower(r.code) || '.net.example'
FROM port p, appliance a, area r
WHERE p.port_id = d.port_id AND a.appliance_id = p.appliance_id AND r.area_id = a.area_id AND d.dns = '' AND a.hostname IS NOT NULL;
COMMIT;

-- Contracts: gold means four hours.
BEGIN;
UPDATE appliance SET extra = jsonb_set(extra, '{contract,hours}', '4') WHERE extra #>> '{contract,level}' = 'gold';
UPDATE appliance SET extra = extra - 'contract' WHERE extra @> '{"contract": {"level": "silver"}}' AND bought < '2020-01-01';
COMMIT;

-- Readings thinned to a weekly mean.
BEGIN;
WITH gone AS (DELETE FROM reading WHERE taken < '2025-01-16' RETURNING *)
INSERT INTO reading SELECT date_trunc('week', taken), appliance_id, avg(celsius), round(avg(load), 1) FROM gone
GROUP BY 1, 2 ORDER BY 1, 2;
COMMIT;

-- Numbering of units from the top.
BEGIN;
UPDATE appliance a SET lowest_unit = c.units + 1 - a.lowest_unit
FROM cabinet c WHERE c.area_id = a.area_id AND c.row_letter = a.row_letter AND c.number = a.cabinet_no AND c.row_letter = 'B';
COMMIT;

-- A hall's subnets and boxes are renumbered.
BEGIN;
UPDATE subnet SET net = set_masklen((host(net)::inet + 65536 * 32)::cidr, masklen(net)), purpose = rtrim('moved ' || purpose) WHERE net <<= '10.3.0.0/16';
UPDATE appliance SET managed_at = managed_at + 65536 * 32 WHERE managed_at << '10.3.0.0/16';
COMMIT;

-- Spares: a planned twin for every failing box outside the lab.
BEGIN;
INSERT INTO appliance (hostname, model_id, area_id, phase, extra)
SELECT hostname || '-b', model_id, area_id, 'planned', jsonb_build_object('twin', appliance_id) FROM appliance
WHERE phase = 'failing' AND extra ->> 'owner' <> 'lab' AND hostname IS NOT NULL ORDER BY appliance_id;
COMMIT;

-- Hand-picked links are re-measured.
BEGIN;
UPDATE link SET metres = metres + 1.5, sheath = coalesce(sheath, 'grey') WHERE (a_port * 7 + b_port) % 23 IN (2, 11, 13) AND a_port % 5 < 3;
COMMIT;

-- Cabinets are unlocked where the draw exceeds an eighth of what is allowed.
BEGIN;
UPDATE cabinet c SET locked = false, max_watts = max_watts + 250
FROM (SELECT area_id, row_letter, cabinet_no, sum(watts) AS draw FROM appliance JOIN model USING (model_id) WHERE phase <> 'retired' GROUP BY 1, 2, 3) u
WHERE u.area_id = c.area_id AND u.row_letter = c.row_letter AND u.cabinet_no = c.number AND draw > 0.125 * max_watts;
COMMIT;

-- Short outages of low severity.
BEGIN;
DELETE FROM incident WHERE outage < '2 hours' AND severity < 3 AND opened < '2024-01-01';
UPDATE incident SET severity = severity - 1 WHERE severity > 1 AND appliance_id IN (SELECT appliance_id FROM appliance WHERE phase = 'retired');
COMMIT;

-- The lab is cleared; ports, links and addresses follow by themselves.
BEGIN;
DELETE FROM appliance WHERE extra ->> 'owner' = 'lab' AND phase IN ('planned', 'staged');
COMMIT;

-- No rule.
BEGIN;
UPDATE appliance SET phase = 'active' WHERE appliance_id IN (5, 19, 22, 87, 140, 143, 208, 260, 301, 333);
COMMIT;
