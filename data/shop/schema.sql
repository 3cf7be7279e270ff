CREATE SCHEMA stock;

CREATE TYPE purchase_state AS ENUM ('cart', 'placed', 'paid', 'shipped', 'returned', 'void');

CREATE TABLE country (
    code char(2) PRIMARY KEY,
    name text NOT NULL UNIQUE,
    vat numeric(4,3) NOT NULL,
    in_union boolean NOT NULL
);

CREATE TABLE customer (
    customer_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mail text NOT NULL UNIQUE,
    full_name text NOT NULL,
    country char(2) NOT NULL REFERENCES country,
    born date,
    joined_on date NOT NULL,
    points integer NOT NULL DEFAULT 0,
    labels text[] NOT NULL DEFAULT '{}',
    prefs jsonb NOT NULL DEFAULT '{}',
    remark text
);

CREATE TABLE category (
    cat_id serial PRIMARY KEY,
    parent_cat integer REFERENCES category ON DELETE SET NULL,
    label text NOT NULL,
    repriced integer NOT NULL DEFAULT 0
);

CREATE TABLE article (
    sku text PRIMARY KEY,
    cat_id integer NOT NULL REFERENCES category,
    title text NOT NULL,
    price numeric(10,2) NOT NULL CHECK (price >= 0),
    cost numeric(10,2) NOT NULL,
    margin numeric(10,2) GENERATED ALWAYS AS (price - cost) STORED,
    grams integer,
    attrs jsonb NOT NULL DEFAULT '{}',
    discontinued boolean NOT NULL DEFAULT false,
    released date NOT NULL
);

CREATE TABLE purchase (
    purchase_id serial PRIMARY KEY,
    customer_no bigint NOT NULL REFERENCES customer ON DELETE CASCADE,
    state purchase_state NOT NULL,
    placed_at timestamptz NOT NULL,
    shipped_at timestamptz,
    total numeric(12,2) NOT NULL DEFAULT 0,
    coupon text
);
CREATE INDEX ON purchase (customer_no);

CREATE TABLE purchase_line (
    purchase_id integer NOT NULL REFERENCES purchase ON DELETE CASCADE,
    line_no smallint NOT NULL,
    sku text NOT NULL REFERENCES article ON UPDATE CASCADE,
    qty integer NOT NULL,
    unit_price numeric(10,2) NOT NULL,
    rebate_pct numeric(4,1),
    PRIMARY KEY (purchase_id, line_no)
);

CREATE TABLE review (
    review_id bigserial PRIMARY KEY,
    sku text NOT NULL REFERENCES article ON UPDATE CASCADE ON DELETE CASCADE,
    customer_no bigint REFERENCES customer ON DELETE SET NULL,
    stars smallint NOT NULL,
    body text,
    written date NOT NULL,
    hidden boolean NOT NULL DEFAULT false
);

CREATE TABLE price_history (
    entry_id bigserial PRIMARY KEY,
    sku text NOT NULL,
    was numeric(10,2),
    is_now numeric(10,2)
);

CREATE TABLE stock.depot (
    depot_code text PRIMARY KEY,
    city text NOT NULL,
    country char(2) NOT NULL REFERENCES public.country,
    capacity integer NOT NULL
);

CREATE TABLE stock.level (
    depot_code text NOT NULL REFERENCES stock.depot,
    sku text NOT NULL REFERENCES public.article ON UPDATE CASCADE,
    on_hand integer NOT NULL,
    reorder_at integer,
    counted_on date NOT NULL,
    PRIMARY KEY (depot_code, sku)
);

-- A journal of rows alike, without a key.
CREATE TABLE stock.movement (
    depot_code text NOT NULL,
    sku text NOT NULL,
    delta integer NOT NULL,
    reason text NOT NULL,
    booked date NOT NULL
);

CREATE FUNCTION tidy_customer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.mail := lower(btrim(NEW.mail));
    NEW.full_name := regexp_replace(btrim(NEW.full_name), '\s+', ' ', 'g');
    RETURN NEW;
END $$;
CREATE TRIGGER tidy BEFORE INSERT OR UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION tidy_customer();

CREATE FUNCTION keep_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO price_history (sku, was, is_now) VALUES (NEW.sku, OLD.price, NEW.price);
    UPDATE category SET repriced = repriced + 1 WHERE cat_id = NEW.cat_id;
    RETURN NULL;
END $$;
CREATE TRIGGER keep_price AFTER UPDATE OF price ON article FOR EACH ROW
    WHEN (OLD.price IS DISTINCT FROM NEW.price) EXECUTE FUNCTION keep_price();
