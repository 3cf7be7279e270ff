-- Transactions that whole runs are tried on: after each name the database before, and after the arrow what is done to it.

-- * identity default, key change
CREATE TABLE t(id int PRIMARY KEY,v text,w int);
INSERT INTO t SELECT g,'v'||g,g%3 FROM generate_series(1,30)g;
-- ->
UPDATE t SET id=id+100 WHERE w=1;
UPDATE t SET v=v||'x' WHERE w=2;
DELETE FROM t WHERE w=0;
INSERT INTO t VALUES(1,'back',NULL);

-- * keyless twins
CREATE TABLE k(a int,b text);
ALTER TABLE k REPLICA IDENTITY FULL;
INSERT INTO k SELECT g%3,'x' FROM generate_series(1,12)g;
-- ->
UPDATE k SET b='y' WHERE ctid=(SELECT min(ctid) FROM k);
DELETE FROM k WHERE ctid=(SELECT max(ctid) FROM k);
UPDATE k SET a=9 WHERE a=1;
INSERT INTO k VALUES(0,'x'),(0,'x');

-- * keyless equal not identical
CREATE EXTENSION citext;
CREATE TABLE k(a citext,n numeric,f float8);
ALTER TABLE k REPLICA IDENTITY FULL;
INSERT INTO k VALUES('A',1.5,0),('a',1.50,'-0'),('A',1.5,'-0'),('b',2,'NaN');
-- ->
DELETE FROM k WHERE a::text='a';
UPDATE k SET n=3 WHERE f::text='-0';
UPDATE k SET a='B' WHERE a='b';

-- * clock trigger
CREATE TABLE t(id int PRIMARY KEY,v int,at timestamptz);
INSERT INTO t SELECT g,g%4,'2020-01-01' FROM generate_series(1,40)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.at=clock_timestamp();RETURN NEW;END$$;
CREATE TRIGGER f BEFORE UPDATE ON t FOR EACH ROW WHEN(OLD.at IS NOT DISTINCT FROM NEW.at) EXECUTE FUNCTION f();
-- ->
UPDATE t SET v=v+10 WHERE v=2;
UPDATE t SET v=0 WHERE id<5;

-- * clock trigger unconditional
CREATE TABLE t(id int PRIMARY KEY,v int,at timestamptz);
INSERT INTO t SELECT g,g%4,'2020-01-01' FROM generate_series(1,10)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.at=clock_timestamp();RETURN NEW;END$$;
CREATE TRIGGER f BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
-- ->
UPDATE t SET v=v+10 WHERE v=2;

-- * audit serial
CREATE TABLE t(id int PRIMARY KEY,v int);
CREATE TABLE audit(id serial PRIMARY KEY,what text,tid int);
INSERT INTO t SELECT g,g%4 FROM generate_series(1,40)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO
  audit(what,tid)VALUES(TG_OP,COALESCE(NEW.id,OLD.id));RETURN NULL;END$$;
CREATE TRIGGER f AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION f();
-- ->
UPDATE t SET v=v+10 WHERE v=2;
DELETE FROM t WHERE v=1;
INSERT INTO t VALUES(100,1),(101,2);
BEGIN;
UPDATE t SET v=5 WHERE id=3;
DELETE FROM audit WHERE id<4;
COMMIT;

-- * audit gap
CREATE TABLE t(id int PRIMARY KEY,v int);
CREATE TABLE audit(id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,what text,tid int);
INSERT INTO t SELECT g,g%4 FROM generate_series(1,40)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO
  audit(what,tid)VALUES(TG_OP,COALESCE(NEW.id,OLD.id));RETURN NULL;END$$;
CREATE TRIGGER f AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION f();
-- ->
UPDATE t SET v=v+10 WHERE v=2;
BEGIN;
UPDATE t SET v=1 WHERE id=1;
ROLLBACK;
DELETE FROM t WHERE v=1;

-- * counter trigger
CREATE TABLE p(id int PRIMARY KEY,n int NOT NULL DEFAULT 0);
CREATE TABLE c(id int PRIMARY KEY,p int REFERENCES p ON DELETE CASCADE);
INSERT INTO p SELECT g FROM generate_series(1,5)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF TG_OP<>'INSERT' THEN UPDATE p SET n=n-1 WHERE
  id=OLD.p;END IF;IF TG_OP<>'DELETE' THEN UPDATE p SET n=n+1 WHERE id=NEW.p;END IF;RETURN NULL;END$$;
CREATE TRIGGER f AFTER INSERT OR UPDATE OF p OR DELETE ON c FOR EACH ROW EXECUTE FUNCTION f();
-- ->
INSERT INTO c SELECT g,1+g%5 FROM generate_series(1,20)g;
UPDATE c SET p=2 WHERE p=3;
DELETE FROM c WHERE p=1;
DELETE FROM p WHERE id=2;
BEGIN;
UPDATE p SET n=0;
UPDATE c SET p=5 WHERE id=4;
COMMIT;

-- * before normalises
CREATE TABLE t(id int PRIMARY KEY,v text);
INSERT INTO t SELECT g,'v'||g FROM generate_series(1,10)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.v=lower(trim(NEW.v));RETURN NEW;END$$;
CREATE TRIGGER f BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
-- ->
UPDATE t SET v=' ABC '||id WHERE id<5;
INSERT INTO t VALUES(50,' X ');

-- * before suppresses
CREATE TABLE t(id int PRIMARY KEY,v int,gone bool DEFAULT false);
INSERT INTO t SELECT g,g FROM generate_series(1,10)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE t SET gone=true WHERE id=OLD.id;RETURN
  NULL;END$$;
CREATE TRIGGER f BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION f();
-- ->
DELETE FROM t WHERE v<4;
UPDATE t SET v=v+1 WHERE gone;

-- * cascade
CREATE TABLE p(id int PRIMARY KEY);
CREATE TABLE c(id int PRIMARY KEY,p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE d(id int PRIMARY KEY,p int REFERENCES p ON DELETE SET NULL);
CREATE TABLE e(id int PRIMARY KEY,p int DEFAULT 1 REFERENCES p ON DELETE SET DEFAULT);
INSERT INTO p SELECT g FROM generate_series(1,5)g;
INSERT INTO c SELECT g,1+g%5 FROM generate_series(1,20)g;
INSERT INTO d SELECT * FROM c;
INSERT INTO e SELECT * FROM c;
-- ->
DELETE FROM p WHERE id IN(2,3);
BEGIN;
DELETE FROM d WHERE p=4;
DELETE FROM e WHERE p=4;
UPDATE p SET id=14 WHERE id=4;
COMMIT;

-- * fk order
CREATE TABLE p(id int PRIMARY KEY);
CREATE TABLE c(id int PRIMARY KEY,p int REFERENCES p);
INSERT INTO p VALUES(1);
INSERT INTO c VALUES(1,1);
-- ->
BEGIN;
INSERT INTO p VALUES(2),(3);
INSERT INTO c VALUES(2,2),(3,3);
COMMIT;
BEGIN;
UPDATE c SET p=1 WHERE p=2;
DELETE FROM p WHERE id=2;
COMMIT;
BEGIN;
DELETE FROM c WHERE p=3;
DELETE FROM p WHERE id=3;
COMMIT;
BEGIN;
INSERT INTO p VALUES(9);
UPDATE c SET p=9;
DELETE FROM p WHERE id=1;
COMMIT;

-- * fk self
CREATE TABLE n(id int PRIMARY KEY,up int REFERENCES n);
INSERT INTO n VALUES(1,NULL),(2,1),(3,2);
-- ->
INSERT INTO n VALUES(4,5),(5,1);
UPDATE n SET up=5 WHERE up=1;
DELETE FROM n WHERE id IN(3,4);
BEGIN;
INSERT INTO n VALUES(7,NULL);
UPDATE n SET up=7 WHERE id=1;
COMMIT;

-- * fk deferred cycle
CREATE TABLE a(id int PRIMARY KEY,b int);
CREATE TABLE b(id int PRIMARY KEY,a int REFERENCES a DEFERRABLE INITIALLY DEFERRED);
ALTER TABLE a ADD FOREIGN KEY(b) REFERENCES b DEFERRABLE INITIALLY DEFERRED;
-- ->
BEGIN;
INSERT INTO a VALUES(1,1),(2,2);
INSERT INTO b VALUES(1,1),(2,2);
COMMIT;
BEGIN;
DELETE FROM a;
DELETE FROM b;
COMMIT;

-- * key swap deferred
CREATE TABLE t(id int PRIMARY KEY DEFERRABLE,pos int UNIQUE DEFERRABLE INITIALLY DEFERRED,v text);
ALTER TABLE t REPLICA IDENTITY FULL;
INSERT INTO t SELECT g,g,'v'||g FROM generate_series(1,6)g;
-- ->
UPDATE t SET id=7-id;
UPDATE t SET pos=7-pos;
UPDATE t SET id=id+1;

-- * key swap immediate
CREATE TABLE t(id int PRIMARY KEY,pos int UNIQUE NOT NULL,v text);
INSERT INTO t SELECT g,g,'v'||g FROM generate_series(1,6)g;
-- ->
BEGIN;
UPDATE t SET pos=-pos;
UPDATE t SET pos=7+pos;
COMMIT;
BEGIN;
UPDATE t SET id=-id;
UPDATE t SET id=7+id;
COMMIT;
BEGIN;
UPDATE t SET pos=0 WHERE pos=1;
UPDATE t SET pos=1 WHERE pos=2;
UPDATE t SET pos=2 WHERE pos=0;
COMMIT;

-- * unique reuse
CREATE TABLE t(id int PRIMARY KEY,slug text UNIQUE);
INSERT INTO t SELECT g,'s'||g FROM generate_series(1,6)g;
-- ->
BEGIN;
DELETE FROM t WHERE id=1;
INSERT INTO t VALUES(7,'s1');
COMMIT;
BEGIN;
UPDATE t SET slug='x' WHERE id=2;
UPDATE t SET slug='s2' WHERE id=3;
INSERT INTO t VALUES(9,'s3');
COMMIT;
BEGIN;
DELETE FROM t WHERE id=4;
INSERT INTO t VALUES(4,'new');
COMMIT;

-- * generated
CREATE TABLE t(id int PRIMARY KEY,a int,b int GENERATED ALWAYS AS(a*2) STORED,c text);
ALTER TABLE t REPLICA IDENTITY FULL;
INSERT INTO t(id,a) SELECT g,g FROM generate_series(1,10)g;
CREATE TABLE v(id int PRIMARY KEY,g int GENERATED ALWAYS AS(id+1) VIRTUAL,x int);
INSERT INTO v(id,x) SELECT g,g FROM generate_series(1,5)g;
-- ->
UPDATE t SET a=a+1 WHERE b>10;
INSERT INTO t(id,a,c) VALUES(20,1,'x');
DELETE FROM t WHERE b=4;
UPDATE v SET x=g;
INSERT INTO v(id,x) VALUES(9,9);

-- * identity always
CREATE TABLE t(id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,v text);
INSERT INTO t(v) SELECT 'v'||g FROM generate_series(1,5)g;
-- ->
INSERT INTO t(v) VALUES('a'),('b');
BEGIN;
INSERT INTO t(v) VALUES('gone');
ROLLBACK;
INSERT INTO t(v) VALUES('c');
UPDATE t SET v='z' WHERE id>3;
DELETE FROM t WHERE id=2;
BEGIN;
INSERT INTO t(v) VALUES('d'),('e');
DELETE FROM t WHERE v='d';
COMMIT;

-- * identity by default
CREATE TABLE t(id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,v text);
INSERT INTO t(v) SELECT 'v'||g FROM generate_series(1,5)g;
-- ->
INSERT INTO t(v) VALUES('a'),('b');
INSERT INTO t VALUES(100,'c');
INSERT INTO t(v) VALUES('d');

-- * serial increments
CREATE SEQUENCE s INCREMENT 10 START 100;
CREATE TABLE t(id int PRIMARY KEY DEFAULT nextval('s'),v text);
ALTER SEQUENCE s OWNED BY t.id;
CREATE SEQUENCE s2 INCREMENT -1;
CREATE TABLE u(id int PRIMARY KEY DEFAULT nextval('s2'),v int);
ALTER SEQUENCE s2 OWNED BY u.id;
CREATE SEQUENCE s3 CACHE 20;
CREATE TABLE w(id int PRIMARY KEY DEFAULT nextval('s3'),v int);
ALTER SEQUENCE s3 OWNED BY w.id;
-- ->
INSERT INTO t(v) VALUES('a'),('b');
INSERT INTO t(v) VALUES('c');
INSERT INTO u(v) VALUES(1),(2);
INSERT INTO u(v) VALUES(3);
INSERT INTO w(v) VALUES(1),(2);
INSERT INTO w(v) VALUES(3);

-- * serial min zero
CREATE SEQUENCE s MINVALUE 0 START 0;
CREATE TABLE t(id int PRIMARY KEY DEFAULT nextval('s'),v text);
ALTER SEQUENCE s OWNED BY t.id;
-- ->
INSERT INTO t(v) VALUES('a'),('b');
INSERT INTO t(v) VALUES('c');
DELETE FROM t WHERE id=0;

-- * schemas
CREATE SCHEMA "My Schema";
CREATE SCHEMA other;
CREATE TABLE "My Schema"."Order"("Id" int PRIMARY KEY,"select" text,"a""b" int,"é" bool);
CREATE TABLE other.t(id int PRIMARY KEY,o int REFERENCES "My Schema"."Order");
CREATE TABLE t(id int PRIMARY KEY,"user" text);
INSERT INTO "My Schema"."Order" SELECT g,'x',g%3,g%2=0 FROM generate_series(1,20)g;
INSERT INTO other.t SELECT g,g FROM generate_series(1,20)g;
INSERT INTO t SELECT g FROM generate_series(1,20)g;
-- ->
UPDATE "My Schema"."Order" SET "select"='y',"a""b"=7 WHERE "é";
DELETE FROM other.t USING "My Schema"."Order" o WHERE o."Id"=t.o AND o."a""b"=1;
UPDATE t SET "user"='u' WHERE id>5;
INSERT INTO "My Schema"."Order" VALUES(99,NULL,NULL,NULL);

-- * partitioned
CREATE TABLE p(id int,d date,v int,PRIMARY KEY(id,d))PARTITION BY RANGE(d);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM('2020-01-01')TO('2021-01-01');
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM('2021-01-01')TO('2022-01-01');
INSERT INTO p SELECT g,'2020-06-01'::date+g*10,g FROM generate_series(1,50)g;
-- ->
UPDATE p SET v=v+1 WHERE d<'2020-12-01';
UPDATE p SET d=d+365 WHERE id<5;
DELETE FROM p WHERE v>40;

-- * check exclusion
CREATE EXTENSION btree_gist;
CREATE TABLE r(id int PRIMARY KEY,room int,during int4range,EXCLUDE USING gist(room WITH =,during WITH
  &&),CHECK(room>0));
INSERT INTO r VALUES(1,1,'[1,5)'),(2,1,'[5,9)'),(3,2,'[1,9)');
-- ->
BEGIN;
UPDATE r SET room=9 WHERE id=1;
UPDATE r SET during='[1,5)' WHERE id=2;
UPDATE r SET room=1,during='[5,9)' WHERE id=1;
COMMIT;

-- * rows changed twice
CREATE TABLE t(id int PRIMARY KEY,v int,w text);
INSERT INTO t SELECT g,g%5,'w' FROM generate_series(1,30)g;
-- ->
BEGIN;
UPDATE t SET v=v+1;
UPDATE t SET w='q' WHERE v=3;
DELETE FROM t WHERE v=5;
INSERT INTO t VALUES(99,1,'n');
UPDATE t SET w='m' WHERE id=99;
INSERT INTO t VALUES(98);
DELETE FROM t WHERE id=98;
COMMIT;
BEGIN;
UPDATE t SET v=v;
COMMIT;

-- * update changes nothing
CREATE TABLE t(id int PRIMARY KEY,v int);
INSERT INTO t VALUES(1,1);
-- ->
UPDATE t SET v=v;
UPDATE t SET v=2;

-- * statement trigger
CREATE TABLE t(id int PRIMARY KEY,v int);
CREATE TABLE stat(id int PRIMARY KEY,n int);
INSERT INTO stat VALUES(1,0);
INSERT INTO t SELECT g,g FROM generate_series(1,10)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE stat SET n=n+1;RETURN NULL;END$$;
CREATE TRIGGER f AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION f();
-- ->
UPDATE t SET v=v+1 WHERE id<4;
BEGIN;
UPDATE t SET v=0 WHERE id=1;
UPDATE t SET v=5 WHERE id=2;
UPDATE t SET v=7 WHERE id=3;
COMMIT;

-- * raising trigger
CREATE TABLE t(id int PRIMARY KEY,v int);
INSERT INTO t SELECT g,g FROM generate_series(1,10)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF NEW.v<OLD.v THEN RAISE 'no';END IF;RETURN
  NEW;END$$;
CREATE TRIGGER f BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
-- ->
UPDATE t SET v=v+1 WHERE id<4;

-- * generated random uuid default
CREATE TABLE t(id uuid PRIMARY KEY DEFAULT gen_random_uuid(),at timestamptz DEFAULT now(),v int DEFAULT 5);
-- ->
INSERT INTO t DEFAULT VALUES;
INSERT INTO t(v) VALUES(NULL),(7);
UPDATE t SET v=1;

-- * toast
CREATE TABLE t(id int PRIMARY KEY,big text,v int);
ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
INSERT INTO t SELECT g,repeat('x',5000)||g,g FROM generate_series(1,5)g;
-- ->
UPDATE t SET v=v+1;
UPDATE t SET big=big||'y' WHERE id=1;
DELETE FROM t WHERE id=2;

-- * rule of notnull unique key nullable
CREATE TABLE t(a int UNIQUE,b int);
ALTER TABLE t REPLICA IDENTITY FULL;
INSERT INTO t VALUES(1,1),(NULL,2),(NULL,3);
-- ->
UPDATE t SET b=3 WHERE a=1;
UPDATE t SET b=4 WHERE ctid=(SELECT max(ctid) FROM t);
UPDATE t SET a=5 WHERE b=2;

-- * text key collation
CREATE TABLE t(k varchar(10) PRIMARY KEY,c char(4) UNIQUE,v int);
INSERT INTO t SELECT 'k'||g,'c'||g,g FROM generate_series(1,20)g;
INSERT INTO t VALUES('','x',0),('It''s','y',0),('é ','z',0);
-- ->
UPDATE t SET v=9 WHERE v=0;
DELETE FROM t WHERE k='';
UPDATE t SET c='q'||v WHERE v>15;
UPDATE t SET k=k||'!' WHERE v=9;

-- * composite key
CREATE TABLE t(a int,b text,c date,v int,PRIMARY KEY(a,b,c));
INSERT INTO t SELECT g%3,'b'||g,'2020-01-01'::date+g,g FROM generate_series(1,20)g;
-- ->
UPDATE t SET v=0 WHERE a=1;
DELETE FROM t WHERE a=2;
UPDATE t SET b=b||'x' WHERE v=3;
INSERT INTO t VALUES(0,'n','infinity',NULL);

-- * float key
CREATE TABLE t(f float8 PRIMARY KEY,r real,v int);
INSERT INTO t VALUES(0.1,0.1,1),('NaN','NaN',1),('-Infinity',1e-45,1),(1e22,3e38,2);
-- ->
UPDATE t SET v=3 WHERE v=1;
UPDATE t SET r=r*0.5 WHERE f>1;
DELETE FROM t WHERE f='NaN';

-- * two triggers chain
CREATE TABLE a(id int PRIMARY KEY,v int);
CREATE TABLE b(id serial PRIMARY KEY,a int,v int);
CREATE TABLE c(id serial PRIMARY KEY,b int,note text);
INSERT INTO a SELECT g,g FROM generate_series(1,10)g;
CREATE FUNCTION fa() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO b(a,v)VALUES(NEW.id,NEW.v);RETURN
  NEW;END$$;
CREATE FUNCTION fb() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO c(b,note)VALUES(NEW.id,'n'||NEW.v);RETURN
  NULL;END$$;
CREATE TRIGGER fa BEFORE UPDATE ON a FOR EACH ROW EXECUTE FUNCTION fa();
CREATE TRIGGER fb AFTER INSERT ON b FOR EACH ROW EXECUTE FUNCTION fb();
-- ->
UPDATE a SET v=v*2 WHERE id>5;
INSERT INTO b(a,v)VALUES(1,1);
BEGIN;
DELETE FROM c WHERE id=2;
UPDATE a SET v=1 WHERE id=2;
COMMIT;

-- * rls
CREATE TABLE t(id int PRIMARY KEY,v int);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
INSERT INTO t SELECT g,g FROM generate_series(1,10)g;
-- ->
UPDATE t SET v=0 WHERE id<5;
DELETE FROM t WHERE id=9;

-- * wide update all
CREATE TABLE t(id int PRIMARY KEY,v int,w text);
INSERT INTO t SELECT g,g,'w'||g FROM generate_series(1,300)g;
-- ->
UPDATE t SET w=md5(id::text);
UPDATE t SET v=(v*7919)%1000;
DELETE FROM t WHERE (v*31)%7=3;

-- * rows of nulls
CREATE TABLE k(a int,b text);
CREATE TABLE t(id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,v text);
ALTER TABLE k REPLICA IDENTITY FULL;
-- ->
INSERT INTO k VALUES(NULL,NULL);
INSERT INTO k VALUES(NULL,NULL),(NULL,'x');
INSERT INTO t(v) VALUES(NULL);
DELETE FROM k WHERE a IS NULL AND b IS NULL;

-- * ids that are no numbers
CREATE TABLE t(id text PRIMARY KEY,v int);
CREATE SEQUENCE s OWNED BY t.id;
ALTER TABLE t ALTER id SET DEFAULT 'x'||nextval('s');
-- ->
INSERT INTO t(v) VALUES(1),(2);
INSERT INTO t(v) VALUES(3);
UPDATE t SET v=0;

-- * views
CREATE TABLE t(id int PRIMARY KEY,v int);
INSERT INTO t VALUES(1,1);
CREATE VIEW w AS SELECT * FROM t;
CREATE MATERIALIZED VIEW m AS SELECT * FROM t;
-- ->
UPDATE w SET v=5;
INSERT INTO w VALUES(2,2);

-- * no columns
CREATE TABLE z();
ALTER TABLE z REPLICA IDENTITY FULL;
CREATE TABLE i(id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,n int GENERATED ALWAYS AS(7) STORED);
-- ->
BEGIN;
INSERT INTO z DEFAULT VALUES;
INSERT INTO i DEFAULT VALUES;
COMMIT;
BEGIN;
INSERT INTO z SELECT FROM generate_series(1,5);
INSERT INTO i SELECT FROM generate_series(1,5);
COMMIT;
DELETE FROM z WHERE ctid=(SELECT min(ctid) FROM z);
DELETE FROM z;

-- * identity always after what was rolled back
CREATE TABLE t(id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,v int UNIQUE,w int);
INSERT INTO t(v) VALUES(1),(2),(3);
-- ->
BEGIN;
INSERT INTO t(v) SELECT g FROM generate_series(10,60)g;
ROLLBACK;
INSERT INTO t(v) VALUES(4),(5);
INSERT INTO t(v) VALUES(6),(1),(2),(3),(1),(1),(7),(8) ON CONFLICT DO NOTHING;
BEGIN;
UPDATE t SET w=v WHERE v<4;
INSERT INTO t(v) VALUES(70);
SAVEPOINT s;
INSERT INTO t(v) VALUES(71),(72),(73),(74),(75),(76);
ROLLBACK TO s;
INSERT INTO t(v) VALUES(77);
DELETE FROM t WHERE v=70;
COMMIT;

-- * names that need care
CREATE SCHEMA "S p";
CREATE TABLE "S p"."a.b"("o'x" serial PRIMARY KEY,"q""q" int DEFAULT 5,"%s" text);
CREATE TABLE "100%"("o'x" serial PRIMARY KEY,"%" text);
INSERT INTO "S p"."a.b"("%s") SELECT 'v%'||g FROM generate_series(1,9)g;
-- ->
UPDATE "S p"."a.b" SET "%s"=upper("%s") WHERE "o'x"%3=0;
INSERT INTO "S p"."a.b"("%s") SELECT "%s" FROM "S p"."a.b" WHERE "o'x">5;
INSERT INTO "100%"("%") SELECT "%s" FROM "S p"."a.b" WHERE "o'x"<5;
INSERT INTO "100%"("%") SELECT "%" FROM "100%";

-- * text beside an empty real
CREATE TABLE t(id int PRIMARY KEY,r real,s text,n int);
INSERT INTO t SELECT g,NULL,'s'||g,g%3 FROM generate_series(1,30)g;
-- ->
BEGIN;
UPDATE t SET s='n404',n=n+1 WHERE n=1;
INSERT INTO t SELECT id+100,r,'n404',n FROM t WHERE n=0;
COMMIT;

-- * two values beside arrays
CREATE TABLE t(id int PRIMARY KEY,a int[],s text,u uuid);
-- ->
INSERT INTO t SELECT g,ARRAY[g%2],CASE g%2 WHEN 0 THEN 'a text of some length' ELSE 'another of some length' END FROM generate_series(1,12)g;

-- * keyless with nulls, audited
CREATE TABLE k(a int,b text,c int);
ALTER TABLE k REPLICA IDENTITY FULL;
CREATE TABLE audit(id serial PRIMARY KEY,what text);
INSERT INTO k SELECT g%3,CASE WHEN g%3=0 THEN 'b'||g END,NULLIF(g%4,0) FROM generate_series(1,24)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO audit(what)VALUES(OLD::text);RETURN NULL;END$$;
CREATE TRIGGER f AFTER DELETE ON k FOR EACH ROW EXECUTE FUNCTION f();
-- ->
DELETE FROM k WHERE c IS NULL OR b IS NULL;
DELETE FROM k WHERE a=0 AND c=1;

-- * logged before, in an order of its own
CREATE TABLE t(id int PRIMARY KEY,v int);
CREATE TABLE log(id serial PRIMARY KEY,tid int);
INSERT INTO t SELECT g,g%4 FROM generate_series(1,40)g;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO log(tid)VALUES(NEW.id);RETURN NEW;END$$;
CREATE TRIGGER f BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL;END$$;
CREATE TRIGGER g AFTER INSERT ON log FOR EACH STATEMENT EXECUTE FUNCTION g();
-- ->
BEGIN;
UPDATE t SET v=9 WHERE id=7;
UPDATE t SET v=9 WHERE id=31;
UPDATE t SET v=9 WHERE id=3;
UPDATE t SET v=9 WHERE id=19;
UPDATE t SET v=9 WHERE id=11;
COMMIT;

-- * scans one after the other
CREATE TABLE n(id int PRIMARY KEY,path text UNIQUE);
INSERT INTO n SELECT g,(array['0001','0002'])[1+g%2]||to_char(g,'FM0000') FROM generate_series(1,60)g;
-- ->
UPDATE n SET path='x'||substr(path,5) WHERE path~'^0001';
UPDATE n SET path='0001'||substr(path,5) WHERE path~'^0002';
UPDATE n SET path='0002'||substr(path,2) WHERE path~'^x';

-- * running totals of a part, some left as they are
CREATE TABLE c(id int PRIMARY KEY,who int,day date,what text,n int);
INSERT INTO c SELECT g,g*7%5,'2024-01-01'::date+g/8,(array['a','b','c'])[1+g%3],g*31%17 FROM generate_series(1,120)g;
-- ->
UPDATE c SET n=s FROM(SELECT id i,sum(n)OVER(PARTITION BY who ORDER BY day)s FROM c WHERE what<'c')x WHERE i=id;

-- * named as the system's
CREATE TABLE public.pg_user(id serial PRIMARY KEY,v int);
INSERT INTO public.pg_user(v) SELECT g FROM generate_series(1,5)g;
-- ->
UPDATE public.pg_user SET v=9 WHERE id=2;
INSERT INTO public.pg_user(v) VALUES(1),(2);

-- * trigger at commit
CREATE TABLE a(id int PRIMARY KEY,v int);
INSERT INTO a SELECT g,g%3 FROM generate_series(1,9)g;
CREATE TABLE last(id int PRIMARY KEY,v text);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
  INSERT INTO last VALUES(NEW.id,'def') ON CONFLICT(id) DO UPDATE SET v=last.v||'+';RETURN NULL;END$$;
CREATE CONSTRAINT TRIGGER f AFTER UPDATE ON a DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();
-- ->
UPDATE a SET v=v+10 WHERE v=2;
BEGIN;
UPDATE a SET v=7 WHERE id<4;
UPDATE last SET v='x' WHERE id=8;
COMMIT;

-- * who did it
CREATE TABLE u(id int PRIMARY KEY,v int);
CREATE TABLE aud(u int PRIMARY KEY,who text DEFAULT current_user,whose text DEFAULT session_user);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO aud(u) VALUES(NEW.id);RETURN NULL;END$$;
CREATE TRIGGER f AFTER INSERT ON u FOR EACH ROW EXECUTE FUNCTION f();
-- ->
INSERT INTO u VALUES(1,2),(2,3);
INSERT INTO aud VALUES(7),(8),(9);

-- * trigger on what is in no stream
CREATE TABLE a(id int PRIMARY KEY,v int);
INSERT INTO a SELECT g,g%3 FROM generate_series(1,9)g;
CREATE UNLOGGED TABLE ul(n serial PRIMARY KEY,id int REFERENCES a ON DELETE CASCADE,v int);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO ul(id,v) VALUES(NEW.id,NEW.v);RETURN NULL;END$$;
CREATE TRIGGER f AFTER UPDATE OF v ON a FOR EACH ROW EXECUTE FUNCTION f();
-- ->
UPDATE a SET v=v+10 WHERE v=2;
UPDATE a SET v=v+10 WHERE v=1;
DELETE FROM a WHERE v>11;

-- * heirs
CREATE TABLE base(id int PRIMARY KEY,t text,g int);
CREATE TABLE child(x int,PRIMARY KEY(id)) INHERITS(base);
CREATE TABLE grandchild(y int) INHERITS(child);
ALTER TABLE grandchild REPLICA IDENTITY FULL;
CREATE TABLE far(id int PRIMARY KEY,b int REFERENCES base,n text);
INSERT INTO base SELECT g,'b',g%4 FROM generate_series(1,30)g;
INSERT INTO child SELECT g,'c',g%4,g FROM generate_series(25,60)g;
INSERT INTO grandchild SELECT g,'d',g%4,g,g FROM generate_series(50,60)g;
INSERT INTO far SELECT g,g,'n' FROM generate_series(1,12)g;
-- ->
UPDATE base SET t='zz' WHERE g=1;
UPDATE ONLY base SET t='o' WHERE g=2;
UPDATE far SET n=t FROM ONLY base WHERE b=base.id AND g=2;
DELETE FROM far WHERE b%4=3;
BEGIN;
DELETE FROM ONLY base WHERE g=3;
DELETE FROM base WHERE g=3 AND id<50;
COMMIT;
INSERT INTO child SELECT id+100,t,g,7 FROM ONLY base WHERE g=2;
UPDATE ONLY child SET id=id+1000 WHERE id<40;
UPDATE base SET t=t||g WHERE id%5=0;
DELETE FROM base WHERE id>40;
INSERT INTO base VALUES(41,'new',1),(50,'new',2);

-- * heirs without keys
CREATE TABLE base(a int,b text);
CREATE TABLE child(c int) INHERITS(base);
ALTER TABLE base REPLICA IDENTITY FULL;
ALTER TABLE child REPLICA IDENTITY FULL;
INSERT INTO base SELECT g%3,'x' FROM generate_series(1,9)g;
INSERT INTO child SELECT g%3,'x',g FROM generate_series(1,9)g;
-- ->
DELETE FROM ONLY base WHERE ctid=(SELECT min(ctid) FROM ONLY base);
UPDATE base SET b='y' WHERE a=1;
UPDATE ONLY base SET b='z' WHERE a=2;
