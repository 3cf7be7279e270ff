-- A subtree moves under another page.
BEGIN;
UPDATE cms.node SET path = '00010001' || '0900' || substr(path, 13), url = replace(url, (SELECT url FROM cms.node WHERE path = '00010002'), (SELECT url FROM cms.node WHERE path = '00010001'))
WHERE path LIKE '000100020001%';
UPDATE cms.node SET child_count = child_count - 1 WHERE path = '00010002';
UPDATE cms.node SET child_count = child_count + 1 WHERE path = '00010001';
COMMIT;

-- Pages of editors who left go to the chief.
BEGIN;
UPDATE cms.node n SET owner_id = 1 FROM cms.editor e WHERE e.editor_id = n.owner_id AND NOT e.active AND n.live;
COMMIT;

-- Drafts of long ago that nobody approved.
BEGIN;
DELETE FROM cms.draft WHERE saved < '2021-01-01' AND approved IS NOT TRUE;
COMMIT;

-- Positions without gaps, from 1.
BEGIN;
UPDATE cms.block b SET position = r.n
FROM (SELECT node_id, position, row_number() OVER (PARTITION BY node_id ORDER BY position) AS n FROM cms.block) r
WHERE r.node_id = b.node_id AND r.position = b.position AND b.block_type <> 'table' AND b.node_id % 3 = 0;
COMMIT;

-- Expiry comes into force: the trigger hides what is over.
BEGIN;
UPDATE cms.node SET expires = '2024-09-30' WHERE expires < '2025-03-01' AND kind IN ('news', 'event');
COMMIT;

-- Two topics become one.
BEGIN;
DELETE FROM cms.node_topic WHERE topic_id = 4 AND node_id IN (SELECT node_id FROM cms.node_topic WHERE topic_id = 2);
INSERT INTO cms.node_topic SELECT node_id, 2, weight FROM cms.node_topic WHERE topic_id = 4 ORDER BY node_id;
DELETE FROM cms.topic WHERE topic_id = 4;
COMMIT;

-- A page is written.
BEGIN;
INSERT INTO cms.node (path, depth, kind, slug, url, heading, lead, live, language, owner_id, first_live, settings)
VALUES ('00010099', 2, 'news', 'autumn-fair', 'Autumn-Fair', ' Autumn fair: "come & see" ', 'Doors open at 9 o''clock.', true, 'en', 3,
        '2024-10-01 09:00:00', '{"menu": true, "template": "hero"}');
INSERT INTO cms.draft (node_id, author_id, saved, body, approved)
VALUES (701, 3, '2024-10-01 08:58:12', '{"v": 2, "text": "Doors open", "words": 212}', true);
INSERT INTO cms.node_topic VALUES (701, 7, 1), (701, 12, 0.5);
INSERT INTO cms.block VALUES (701, 1, 'text', NULL, 'Doors open at 9 o''clock.'), (701, 2, 'picture', 88, 'The hall, früh am Morgen');
UPDATE cms.node SET child_count = child_count + 1 WHERE path = '0001';
COMMIT;

-- Search titles from the headings where there is none.
BEGIN;
UPDATE cms.node SET settings = jsonb_set(settings, '{seo}', jsonb_build_object('title', heading, 'index', live))
WHERE NOT settings ? 'seo' AND language = 'de' AND depth < 4;
COMMIT;

-- Alternative texts from file names.
BEGIN;
UPDATE cms.picture SET alt = initcap(split_part(split_part(file, '/', 3), '_', 1)) WHERE alt = '' AND width > height;
COMMIT;

-- A redirect for every hidden recipe.
BEGIN;
INSERT INTO cms.redirect (from_url, to_node, permanent)
SELECT n.url, p.node_id, true FROM cms.node n JOIN cms.node p ON p.path = left(n.path, -4)
WHERE n.kind = 'recipe' AND NOT n.live ORDER BY n.node_id
ON CONFLICT DO NOTHING;
COMMIT;

-- Robots do not count.
BEGIN;
DELETE FROM hit WHERE agent ~ 'Bot|curl' AND referrer IS NULL;
UPDATE cms.redirect SET hits = 0 WHERE hits < 5;
COMMIT;

-- Newest drafts of moderated pages are approved.
BEGIN;
UPDATE cms.draft d SET approved = true
WHERE approved IS NULL AND saved = (SELECT max(saved) FROM cms.draft x WHERE x.node_id = d.node_id)
  AND node_id IN (SELECT node_id FROM cms.node WHERE kind = 'article' AND live);
COMMIT;

-- Pictures too small to use leave the blocks.
BEGIN;
UPDATE cms.block SET picture_id = NULL, block_type = 'text' WHERE picture_id IN (SELECT picture_id FROM cms.picture WHERE width * height < 500000);
DELETE FROM cms.picture WHERE width * height < 500000 AND uploaded < '2022-01-01';
COMMIT;

-- Picked by hand.
BEGIN;
UPDATE cms.node SET settings = settings || '{"template": "hero"}' WHERE node_id IN (14, 33, 57, 101, 102, 230, 388, 391, 402, 515, 688);
COMMIT;

-- The German pages get Czech sisters in the second level.
BEGIN;
INSERT INTO cms.node (path, depth, kind, slug, url, heading, live, language, owner_id, settings)
SELECT '0001' || lpad((500 + row_number() OVER (ORDER BY path))::text, 4, '0'), 2, kind, slug || '-cs', '/cs' || url, heading || ' [cs]', false, 'cs', owner_id, settings - 'seo'
FROM cms.node WHERE language = 'de' AND depth = 2 ORDER BY path;
UPDATE cms.node SET child_count = (SELECT count(*) FROM cms.node WHERE depth = 2) WHERE depth = 1;
COMMIT;

-- Weights by rank within a topic.
BEGIN;
UPDATE cms.node_topic t SET weight = r.w
FROM (SELECT node_id, topic_id, round(1.0 / rank() OVER (PARTITION BY topic_id ORDER BY node_id), 2) AS w FROM cms.node_topic) r
WHERE r.node_id = t.node_id AND r.topic_id = t.topic_id AND t.topic_id BETWEEN 5 AND 12;
COMMIT;

-- Editors: translators and idle ones.
BEGIN;
UPDATE cms.editor SET roles = array_remove(roles, 'translator') || '{localiser}'::text[] WHERE 'translator' = ANY (roles);
UPDATE cms.editor SET active = false WHERE last_login < '2021-06-01' AND NOT EXISTS (SELECT FROM cms.node WHERE owner_id = editor_id);
COMMIT;

-- An old branch is taken down with all that hangs on it.
BEGIN;
DELETE FROM cms.node WHERE path LIKE '00010003%' AND depth > 2;
UPDATE cms.node SET child_count = 0, live = false WHERE path = '00010003';
COMMIT;
