-- A word is no longer used: the trigger stamps each edit.
BEGIN;
UPDATE message SET body = replace(body, 'urgent', 'important') WHERE body LIKE '%urgent%' AND sent_at >= '2024-03-01';
COMMIT;

-- Everything up to the summer counts as read for those who want no notices.
BEGIN;
UPDATE seat SET read_up_to = (SELECT max(message_id) FROM message m WHERE m.room_id = seat.room_id AND sent_at < '2024-07-01') WHERE notify = 'none';
COMMIT;

-- Bots leave the secret rooms.
BEGIN;
DELETE FROM seat s USING account a, room r
WHERE a.account_id = s.account_id AND r.room_id = s.room_id AND a.is_bot AND r.secret;
COMMIT;

-- A conversation.
BEGIN;
INSERT INTO message (room_id, sender, subject, body, sent_at, meta) VALUES (1, 31, '', 'Who has the key to hall 3?', '2024-09-01 07:58:02+00', '{"client": "ios", "links": 0}');
INSERT INTO message (room_id, sender, reply_to, body, sent_at) VALUES (1, 44, 2501, '@zoë has it – until 9''ish', '2024-09-01 07:59:40+00');
INSERT INTO mention VALUES (2502, 12, false);
INSERT INTO reaction VALUES (2502, 31, '👍'), (2502, 7, '👍');
UPDATE account SET seen = '2024-09-01 07:59:40+00' WHERE account_id IN (31, 44);
COMMIT;

-- Old messages of archived rooms move to the archive; reactions and mentions go with them.
BEGIN;
WITH gone AS (
    DELETE FROM message m USING room r WHERE r.room_id = m.room_id AND r.archived AND m.sent_at < '2024-02-01'
    RETURNING m.message_id, r.name, m.body, m.sent_at)
INSERT INTO ops.archive SELECT message_id, '#' || name, body, (sent_at AT TIME ZONE 'UTC')::date FROM gone ORDER BY message_id;
COMMIT;

-- Rooms in the order of last use.
BEGIN;
UPDATE seat s SET sort_order = n.place
FROM (SELECT s.room_id, s.account_id, row_number() OVER (PARTITION BY account_id ORDER BY pinned DESC, last_message DESC NULLS LAST, s.room_id) AS place
      FROM seat s JOIN room USING (room_id)) n
WHERE n.room_id = s.room_id AND n.account_id = s.account_id AND s.account_id <= 60;
COMMIT;

-- Figures of August.
BEGIN;
INSERT INTO ops.daily (day, team_id, sent, senders)
SELECT (m.sent_at AT TIME ZONE 'UTC')::date, r.team_id, count(*), count(DISTINCT m.sender) FROM message m JOIN room r USING (room_id)
WHERE m.sent_at >= '2024-08-01' AND m.sent_at < '2024-08-29' GROUP BY 1, 2 ORDER BY 1, 2
ON CONFLICT (day, team_id) DO UPDATE SET sent = excluded.sent, senders = excluded.senders;
UPDATE ops.daily d SET share = round(sent::numeric / (SELECT sum(sent) FROM ops.daily t WHERE t.day = d.day), 4) WHERE share IS NULL;
COMMIT;

-- Everyone of team 3 joins its open rooms.
BEGIN;
INSERT INTO seat (room_id, account_id, notify)
SELECT room_id, account_id, CASE WHEN rank = 'guest' THEN 'none' ELSE 'mentions' END FROM room JOIN account USING (team_id)
WHERE team_id = 3 AND NOT secret AND NOT archived AND NOT is_bot ORDER BY room_id, account_id
ON CONFLICT DO NOTHING;
COMMIT;

-- Twice the same reaction.
BEGIN;
DELETE FROM reaction WHERE emoji IN ('+1', 'tada') AND message_id % 2 = 0;
UPDATE reaction SET emoji = CASE emoji WHEN '+1' THEN '👍' ELSE '🎉' END WHERE emoji IN ('+1', 'tada');
COMMIT;

-- Clients are renamed, counters of links go.
BEGIN;
UPDATE message SET meta = (meta - 'links') || '{"client": "terminal"}' WHERE meta ->> 'client' = 'cli';
COMMIT;

-- A bit for messages with uploads.
BEGIN;
UPDATE message SET flags = flags | B'1000' WHERE message_id IN (SELECT message_id FROM upload WHERE filename ILIKE '%.png');
COMMIT;

-- Long silent guests.
BEGIN;
UPDATE account SET rank = 'guest', muted_words = muted_words || nick::text
WHERE rank = 'member' AND (seen IS NULL OR seen < created + interval '60 days');
COMMIT;

-- Mentions of people who read on are seen.
BEGIN;
UPDATE mention n SET seen = true FROM message m, seat s
WHERE m.message_id = n.message_id AND s.room_id = m.room_id AND s.account_id = n.account_id AND s.read_up_to >= m.message_id AND NOT n.seen;
COMMIT;

-- Orphans among the uploads.
BEGIN;
DELETE FROM upload WHERE message_id IS NULL AND uploaded_on < '2024-05-01';
UPDATE upload SET filename = lower(filename), checksum = NULL WHERE filename <> lower(filename) AND size > 1000000;
COMMIT;

-- A team signs in by address: no rule for the nicks.
BEGIN;
UPDATE account SET nick = split_part(email, '@', 1) || account_id, zone = 'Europe/Paris' WHERE team_id = 3 AND zone = 'UTC';
UPDATE account SET nick = 'ümit' WHERE account_id = 9;
UPDATE account SET nick = 'x''eno' WHERE account_id = 77;
UPDATE account SET nick = 'boss' WHERE account_id = 130;
COMMIT;

-- Answers inherit the subject.
BEGIN;
UPDATE message m SET subject = p.subject FROM message p WHERE p.message_id = m.reply_to AND m.subject = '' AND p.subject <> '';
COMMIT;

-- Two accounts leave; what they wrote goes too.
BEGIN;
DELETE FROM account WHERE account_id IN (23, 118);
COMMIT;

-- An arbitrary set is pinned.
BEGIN;
UPDATE seat SET pinned = true, colour = '#ffcc00' WHERE (room_id, account_id) IN (
    SELECT room_id, account_id FROM seat WHERE md5(room_id || '/' || account_id) < '0a');
COMMIT;
