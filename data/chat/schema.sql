CREATE TYPE rank AS ENUM ('guest', 'member', 'steward', 'owner');

CREATE TABLE team (
    team_id smallint PRIMARY KEY,
    handle text NOT NULL UNIQUE,
    plan text NOT NULL,
    seats integer,
    defaults jsonb NOT NULL
);

CREATE TABLE account (
    account_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id smallint NOT NULL REFERENCES team ON DELETE CASCADE,
    nick varchar(30) NOT NULL,
    email text NOT NULL,
    rank rank NOT NULL DEFAULT 'member',
    is_bot boolean NOT NULL DEFAULT false,
    zone text NOT NULL DEFAULT 'UTC',
    created timestamptz NOT NULL,
    seen timestamptz,
    muted_words text[] NOT NULL DEFAULT '{}',
    UNIQUE (team_id, nick)
);

CREATE TABLE room (
    room_id serial PRIMARY KEY,
    team_id smallint NOT NULL REFERENCES team ON DELETE CASCADE,
    name text NOT NULL,
    about text,
    secret boolean NOT NULL DEFAULT false,
    archived boolean NOT NULL DEFAULT false,
    messages integer NOT NULL DEFAULT 0,
    last_message bigint,
    creator integer REFERENCES account ON DELETE SET NULL
);

CREATE TABLE seat (
    room_id integer NOT NULL REFERENCES room ON DELETE CASCADE,
    account_id integer NOT NULL REFERENCES account ON DELETE CASCADE,
    colour char(7) NOT NULL DEFAULT '#808080',
    pinned boolean NOT NULL DEFAULT false,
    sort_order smallint,
    read_up_to bigint,
    notify text NOT NULL DEFAULT 'mentions',
    PRIMARY KEY (room_id, account_id)
);

CREATE TABLE message (
    message_id bigserial PRIMARY KEY,
    room_id integer NOT NULL REFERENCES room ON DELETE CASCADE,
    sender integer NOT NULL REFERENCES account ON DELETE CASCADE,
    reply_to bigint REFERENCES message ON DELETE SET NULL,
    subject text NOT NULL DEFAULT '',
    body text NOT NULL,
    words integer GENERATED ALWAYS AS (array_length(string_to_array(body, ' '), 1)) STORED,
    sent_at timestamptz NOT NULL,
    edited_at timestamptz,
    flags bit(4) NOT NULL DEFAULT B'0000',
    meta jsonb
);

-- People press twice; nobody minds.
CREATE TABLE reaction (
    message_id bigint NOT NULL REFERENCES message ON DELETE CASCADE,
    account_id integer NOT NULL REFERENCES account ON DELETE CASCADE,
    emoji text NOT NULL
);
CREATE INDEX ON reaction (message_id);

CREATE TABLE mention (
    message_id bigint NOT NULL REFERENCES message ON DELETE CASCADE,
    account_id integer NOT NULL REFERENCES account ON DELETE CASCADE,
    seen boolean NOT NULL DEFAULT false,
    PRIMARY KEY (message_id, account_id)
);

CREATE TABLE upload (
    token uuid PRIMARY KEY,
    message_id bigint REFERENCES message ON DELETE SET NULL,
    filename text NOT NULL,
    size bigint NOT NULL,
    checksum bytea,
    uploaded_on date NOT NULL
);

CREATE SCHEMA ops;

CREATE TABLE ops.trail (
    trail_id bigserial PRIMARY KEY,
    message_id bigint NOT NULL,
    event text NOT NULL,
    noted_at timestamptz NOT NULL
);

CREATE TABLE ops.daily (
    day date NOT NULL,
    team_id smallint NOT NULL REFERENCES team,
    sent integer NOT NULL,
    senders integer NOT NULL,
    share numeric(6,4),
    PRIMARY KEY (day, team_id)
);

CREATE TABLE ops.archive (
    message_id bigint PRIMARY KEY,
    room_name text NOT NULL,
    body text NOT NULL,
    sent_on date NOT NULL
);

CREATE FUNCTION stamp_edit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.body <> OLD.body THEN
        NEW.edited_at := clock_timestamp();
        NEW.flags := NEW.flags | B'0001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER stamp_edit BEFORE UPDATE ON message FOR EACH ROW EXECUTE FUNCTION stamp_edit();

CREATE FUNCTION ops.follow_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE room SET messages = messages + 1, last_message = NEW.message_id WHERE room_id = NEW.room_id;
    ELSE
        UPDATE room SET messages = messages - 1 WHERE room_id = OLD.room_id;
        INSERT INTO ops.trail (message_id, event, noted_at) VALUES (OLD.message_id, 'deleted', clock_timestamp());
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER follow_message AFTER INSERT OR DELETE ON message FOR EACH ROW EXECUTE FUNCTION ops.follow_message();
