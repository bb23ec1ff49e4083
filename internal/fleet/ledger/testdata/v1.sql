--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: river_job_state; Type: TYPE; Schema: public; Owner: -
--

CREATE TYPE public.river_job_state AS ENUM (
    'available',
    'cancelled',
    'completed',
    'discarded',
    'pending',
    'retryable',
    'running',
    'scheduled'
);


--
-- Name: river_job_state_in_bitmask(bit, public.river_job_state); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.river_job_state_in_bitmask(bitmask bit, state public.river_job_state) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE state
        WHEN 'available' THEN get_bit(bitmask, 7)
        WHEN 'cancelled' THEN get_bit(bitmask, 6)
        WHEN 'completed' THEN get_bit(bitmask, 5)
        WHEN 'discarded' THEN get_bit(bitmask, 4)
        WHEN 'pending'   THEN get_bit(bitmask, 3)
        WHEN 'retryable' THEN get_bit(bitmask, 2)
        WHEN 'running'   THEN get_bit(bitmask, 1)
        WHEN 'scheduled' THEN get_bit(bitmask, 0)
        ELSE 0
    END = 1;
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: fleet_attempts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_attempts (
    part text NOT NULL,
    attempt bigint NOT NULL,
    box text NOT NULL,
    device text NOT NULL,
    request text,
    nonce text NOT NULL,
    token text NOT NULL,
    state text NOT NULL,
    until bigint NOT NULL,
    claimed bigint NOT NULL,
    ended bigint DEFAULT 0 NOT NULL,
    why text DEFAULT ''::text NOT NULL,
    progress text DEFAULT '{}'::text NOT NULL,
    files text DEFAULT '[]'::text NOT NULL
);


--
-- Name: fleet_boxes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_boxes (
    id text NOT NULL,
    name text NOT NULL,
    fingerprint text NOT NULL,
    joined bigint NOT NULL,
    seen bigint NOT NULL,
    offer text NOT NULL,
    labels text DEFAULT '{}'::text NOT NULL,
    health text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    removed bigint DEFAULT 0 NOT NULL
);


--
-- Name: fleet_codes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_codes (
    hash text NOT NULL,
    maker text NOT NULL,
    made bigint NOT NULL,
    until bigint NOT NULL,
    box text DEFAULT ''::text NOT NULL
);


--
-- Name: fleet_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_keys (
    key text NOT NULL,
    request text NOT NULL,
    run text NOT NULL,
    made bigint NOT NULL
);


--
-- Name: fleet_needs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_needs (
    queue text NOT NULL,
    need text NOT NULL,
    bars text NOT NULL
);


--
-- Name: fleet_parts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_parts (
    id text NOT NULL,
    run text NOT NULL,
    idx bigint NOT NULL,
    plan text NOT NULL,
    archives text NOT NULL,
    need text NOT NULL,
    bars text DEFAULT '[]'::text NOT NULL,
    queue text NOT NULL,
    state text NOT NULL,
    priority bigint NOT NULL,
    tag bigint NOT NULL,
    job bigint NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    outcome text DEFAULT ''::text NOT NULL,
    ended bigint DEFAULT 0 NOT NULL
);


--
-- Name: fleet_readings; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_readings (
    box text NOT NULL,
    device text NOT NULL,
    n bigint NOT NULL,
    at bigint NOT NULL,
    reading text NOT NULL
);


--
-- Name: fleet_runs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_runs (
    id text NOT NULL,
    plan text NOT NULL,
    series text NOT NULL,
    priority bigint NOT NULL,
    reference text NOT NULL,
    state text NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    created bigint NOT NULL,
    started bigint DEFAULT 0 NOT NULL,
    ended bigint DEFAULT 0 NOT NULL,
    cancel bigint DEFAULT 0 NOT NULL,
    open bigint NOT NULL,
    ends bigint DEFAULT 0 NOT NULL,
    files text DEFAULT '[]'::text NOT NULL
);


--
-- Name: fleet_series; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_series (
    series text NOT NULL,
    priority bigint NOT NULL,
    finish bigint NOT NULL
);


--
-- Name: fleet_state; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_state (
    name text NOT NULL,
    n bigint NOT NULL
);


--
-- Name: fleet_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_version (
    version bigint NOT NULL
);


--
-- Name: fleet_wants; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_wants (
    digest text NOT NULL,
    box text NOT NULL,
    part text NOT NULL,
    path text NOT NULL,
    made bigint NOT NULL
);


--
-- Name: river_job; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.river_job (
    id bigint NOT NULL,
    state public.river_job_state DEFAULT 'available'::public.river_job_state NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    max_attempts smallint DEFAULT 25 NOT NULL,
    attempted_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finalized_at timestamp with time zone,
    scheduled_at timestamp with time zone DEFAULT now() NOT NULL,
    priority smallint DEFAULT 1 NOT NULL,
    args jsonb NOT NULL,
    attempted_by text[],
    errors jsonb[],
    kind text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    queue text DEFAULT 'default'::text NOT NULL,
    tags character varying(255)[] DEFAULT '{}'::character varying[] NOT NULL,
    unique_key bytea,
    unique_states bit(8),
    CONSTRAINT finalized_or_finalized_at_null CHECK ((((finalized_at IS NULL) AND (state <> ALL (ARRAY['cancelled'::public.river_job_state, 'completed'::public.river_job_state, 'discarded'::public.river_job_state]))) OR ((finalized_at IS NOT NULL) AND (state = ANY (ARRAY['cancelled'::public.river_job_state, 'completed'::public.river_job_state, 'discarded'::public.river_job_state]))))),
    CONSTRAINT kind_length CHECK (((char_length(kind) > 0) AND (char_length(kind) < 128))),
    CONSTRAINT max_attempts_is_positive CHECK ((max_attempts > 0)),
    CONSTRAINT priority_in_range CHECK (((priority >= 1) AND (priority <= 4))),
    CONSTRAINT queue_length CHECK (((char_length(queue) > 0) AND (char_length(queue) < 128)))
);


--
-- Name: river_job_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.river_job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: river_job_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.river_job_id_seq OWNED BY public.river_job.id;


--
-- Name: river_leader; Type: TABLE; Schema: public; Owner: -
--

CREATE UNLOGGED TABLE public.river_leader (
    elected_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    leader_id text NOT NULL,
    name text DEFAULT 'default'::text NOT NULL,
    CONSTRAINT leader_id_length CHECK (((char_length(leader_id) > 0) AND (char_length(leader_id) < 128))),
    CONSTRAINT name_length CHECK ((name = 'default'::text))
);


--
-- Name: river_migration; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.river_migration (
    line text NOT NULL,
    version bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT line_length CHECK (((char_length(line) > 0) AND (char_length(line) < 128))),
    CONSTRAINT version_gte_1 CHECK ((version >= 1))
);


--
-- Name: river_notification; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.river_notification (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    payload text NOT NULL,
    topic text NOT NULL,
    CONSTRAINT topic_length CHECK (((length(topic) > 0) AND (length(topic) < 128)))
);


--
-- Name: river_notification_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.river_notification_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: river_notification_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.river_notification_id_seq OWNED BY public.river_notification.id;


--
-- Name: river_queue; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.river_queue (
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    paused_at timestamp with time zone,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);


--
-- Name: river_job id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.river_job ALTER COLUMN id SET DEFAULT nextval('public.river_job_id_seq'::regclass);


--
-- Name: river_notification id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.river_notification ALTER COLUMN id SET DEFAULT nextval('public.river_notification_id_seq'::regclass);


--
-- Data for Name: fleet_attempts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_attempts VALUES ('ended', 1, 'box-OTEA2QSLABW5QBK2', 'a', '341c0a3e67c3146720fa1b9504927ece5f5daefadaad467dddfd2ff04ba039be', 'd663fc084adc9778ba4987b49993cd2a48cce0f0614132f210db328693a59bb4', '752a15fffe188242e7ad4e5cc836b712fe30462f9467d9f572b174e32e9cc24e', 'ended', 1795510980000000000, 1795510800000000000, 1795510800000000000, '', '{}', '[{"path":"run.json","bytes":1,"sha256":"2dfe744f64b97238df644a0ef96b7f245bb6ffc7519b726824c0753e6e3797c4"}]');
INSERT INTO public.fleet_attempts VALUES ('going.01', 1, 'box-OTEA2QSLABW5QBK2', 'a', 'c75de8c1b7c3ae5252091267a736a9bf57001d80e82668b3cb3cd09e2f6a43cb', '63d16048bd8bc99710bcd3cafdb23a044572352877f777967ce27375103fae64', '72546dcce73d1563200413f5ea2987916f2983ab9e0c870bfb98f363e75f5764', 'live', 1795510980000000000, 1795510800000000000, 0, '', '{}', '[{"path":"trials/001/trial.json","bytes":1,"sha256":"c942135dda143efc2782a083401592de753c2b63826a4e45e83a9d4d816ba667"}]');


--
-- Data for Name: fleet_boxes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_boxes VALUES ('box-OTEA2QSLABW5QBK2', 'one', 'print-one', 1795510800000000000, 1795510800000000000, '{"software":"1","cores":2,"memory_bytes":0,"devices":[{"name":"a","kind":"virtual","ready":true,"browsers":["chromium"]},{"name":"b","kind":"virtual","ready":true,"browsers":["chromium"]}]}', '{}', 'unknown', '', 0);


--
-- Data for Name: fleet_codes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_codes VALUES ('2199b78e56a809f9042440e23e0abfac5750bb347ffc2a7fcb9f26df38a804a4', 'test', 1795510800000000000, 1795514400000000000, 'box-OTEA2QSLABW5QBK2');


--
-- Data for Name: fleet_keys; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: fleet_needs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_needs VALUES ('need-f1de149cd6c15c2bcf4d', '{"boxes":["two"]}', '[]');
INSERT INTO public.fleet_needs VALUES ('need-44136fa355b3678a1146', '{}', '[]');


--
-- Data for Name: fleet_parts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_parts VALUES ('ended', 'ended', 0, '{"name":"ended","trials":1}', 'null', '{}', '[]', 'need-44136fa355b3678a1146', 'done', 3, 0, 1, 1, '{"state":"done","files":null,"trials":0,"thrown":0}', 1795510800000000000);
INSERT INTO public.fleet_parts VALUES ('going.02', 'going', 1, '{"name":"going","trials":1}', 'null', '{"boxes":["two"]}', '[]', 'need-f1de149cd6c15c2bcf4d', 'queued', 3, 2, 4, 0, '', 0);
INSERT INTO public.fleet_parts VALUES ('going.01', 'going', 0, '{"name":"going","trials":1}', 'null', '{}', '[]', 'need-44136fa355b3678a1146', 'running', 3, 1, 3, 1, '', 0);
INSERT INTO public.fleet_parts VALUES ('waiting', 'waiting', 0, '{"name":"waiting","trials":1}', 'null', '{}', '[]', 'need-44136fa355b3678a1146', 'queued', 3, 1, 5, 0, '', 0);


--
-- Data for Name: fleet_readings; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_readings VALUES ('box-OTEA2QSLABW5QBK2', 'a', 1, 1795510800000000000, '{}');


--
-- Data for Name: fleet_runs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_runs VALUES ('ended', '{"name":"ended","trials":1}', 'x', 3, '', 'assembling', '', 1795510800000000000, 1795510800000000000, 0, 0, 0, 0, '[]');
INSERT INTO public.fleet_runs VALUES ('going', '{"name":"going","trials":1}', 'x', 3, '', 'running', '', 1795510800000000000, 1795510800000000000, 0, 0, 2, 0, '[]');
INSERT INTO public.fleet_runs VALUES ('waiting', '{"name":"waiting","trials":1}', 'y', 3, '', 'queued', '', 1795510800000000000, 0, 0, 0, 1, 0, '[]');


--
-- Data for Name: fleet_series; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_series VALUES ('x', 3, 3);
INSERT INTO public.fleet_series VALUES ('y', 3, 2);


--
-- Data for Name: fleet_state; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_state VALUES ('adding', 0);
INSERT INTO public.fleet_state VALUES ('ends', 0);
INSERT INTO public.fleet_state VALUES ('clock-1', 0);
INSERT INTO public.fleet_state VALUES ('clock-2', 0);
INSERT INTO public.fleet_state VALUES ('clock-4', 0);
INSERT INTO public.fleet_state VALUES ('alive', 1795510800000000000);
INSERT INTO public.fleet_state VALUES ('clock-3', 1);


--
-- Data for Name: fleet_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_version VALUES (1);


--
-- Data for Name: fleet_wants; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: river_job; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.river_job VALUES (1, 'completed', 1, 1000, '2026-11-24 09:00:00+00', '2026-11-24 09:00:00+00', '2026-11-24 09:00:00+00', '2000-01-01 00:00:00+00', 3, '{"part": "ended"}', '{box-OTEA2QSLABW5QBK2}', NULL, 'part', '{}', 'need-44136fa355b3678a1146', '{}', NULL, NULL);
INSERT INTO public.river_job VALUES (2, 'available', 0, 5, NULL, '2026-11-24 09:00:00+00', NULL, '2000-01-01 00:00:00+00', 1, '{"run": "ended"}', NULL, NULL, 'assemble', '{}', 'assemble', '{}', NULL, NULL);
INSERT INTO public.river_job VALUES (4, 'available', 0, 1000, NULL, '2026-11-24 09:00:00+00', NULL, '2000-01-01 00:00:00.002+00', 3, '{"part": "going.02"}', NULL, NULL, 'part', '{}', 'need-f1de149cd6c15c2bcf4d', '{}', NULL, NULL);
INSERT INTO public.river_job VALUES (3, 'running', 1, 1000, '2026-11-24 09:00:00+00', '2026-11-24 09:00:00+00', NULL, '2000-01-01 00:00:00.001+00', 3, '{"part": "going.01"}', '{box-OTEA2QSLABW5QBK2}', NULL, 'part', '{}', 'need-44136fa355b3678a1146', '{}', NULL, NULL);
INSERT INTO public.river_job VALUES (5, 'available', 0, 1000, NULL, '2026-11-24 09:00:00+00', NULL, '2000-01-01 00:00:00.001+00', 3, '{"part": "waiting"}', NULL, NULL, 'part', '{}', 'need-44136fa355b3678a1146', '{}', NULL, NULL);


--
-- Data for Name: river_leader; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: river_migration; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.river_migration VALUES ('main', 1, '2026-11-24 07:31:37.606515+00');
INSERT INTO public.river_migration VALUES ('main', 2, '2026-11-24 07:31:37.646498+00');
INSERT INTO public.river_migration VALUES ('main', 3, '2026-11-24 07:31:37.677548+00');
INSERT INTO public.river_migration VALUES ('main', 4, '2026-11-24 07:31:37.681094+00');
INSERT INTO public.river_migration VALUES ('main', 5, '2026-11-24 07:31:37.691027+00');
INSERT INTO public.river_migration VALUES ('main', 6, '2026-11-24 07:31:37.752703+00');
INSERT INTO public.river_migration VALUES ('main', 7, '2026-11-24 07:31:37.763572+00');
INSERT INTO public.river_migration VALUES ('main', 8, '2026-11-24 07:31:37.80243+00');


--
-- Data for Name: river_notification; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: river_queue; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Name: river_job_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.river_job_id_seq', 5, true);


--
-- Name: river_notification_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.river_notification_id_seq', 1, false);


--
-- Name: fleet_attempts fleet_attempts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_attempts
    ADD CONSTRAINT fleet_attempts_pkey PRIMARY KEY (part, attempt);


--
-- Name: fleet_boxes fleet_boxes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_boxes
    ADD CONSTRAINT fleet_boxes_pkey PRIMARY KEY (id);


--
-- Name: fleet_codes fleet_codes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_codes
    ADD CONSTRAINT fleet_codes_pkey PRIMARY KEY (hash);


--
-- Name: fleet_keys fleet_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_keys
    ADD CONSTRAINT fleet_keys_pkey PRIMARY KEY (key);


--
-- Name: fleet_needs fleet_needs_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_needs
    ADD CONSTRAINT fleet_needs_pkey PRIMARY KEY (queue);


--
-- Name: fleet_parts fleet_parts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_parts
    ADD CONSTRAINT fleet_parts_pkey PRIMARY KEY (id);


--
-- Name: fleet_readings fleet_readings_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_readings
    ADD CONSTRAINT fleet_readings_pkey PRIMARY KEY (box, device, n);


--
-- Name: fleet_runs fleet_runs_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_runs
    ADD CONSTRAINT fleet_runs_pkey PRIMARY KEY (id);


--
-- Name: fleet_series fleet_series_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_series
    ADD CONSTRAINT fleet_series_pkey PRIMARY KEY (series, priority);


--
-- Name: fleet_state fleet_state_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_state
    ADD CONSTRAINT fleet_state_pkey PRIMARY KEY (name);


--
-- Name: fleet_wants fleet_wants_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_wants
    ADD CONSTRAINT fleet_wants_pkey PRIMARY KEY (digest, box);


--
-- Name: river_job river_job_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.river_job
    ADD CONSTRAINT river_job_pkey PRIMARY KEY (id);


--
-- Name: river_leader river_leader_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.river_leader
    ADD CONSTRAINT river_leader_pkey PRIMARY KEY (name);


--
-- Name: river_migration river_migration_pkey1; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.river_migration
    ADD CONSTRAINT river_migration_pkey1 PRIMARY KEY (line, version);


--
-- Name: river_notification river_notification_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.river_notification
    ADD CONSTRAINT river_notification_pkey PRIMARY KEY (id);


--
-- Name: river_queue river_queue_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.river_queue
    ADD CONSTRAINT river_queue_pkey PRIMARY KEY (name);


--
-- Name: fleet_attempts_device; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX fleet_attempts_device ON public.fleet_attempts USING btree (box, device) WHERE (state = 'live'::text);


--
-- Name: fleet_attempts_part; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX fleet_attempts_part ON public.fleet_attempts USING btree (part) WHERE (state = 'live'::text);


--
-- Name: fleet_attempts_request; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX fleet_attempts_request ON public.fleet_attempts USING btree (box, request) WHERE (request IS NOT NULL);


--
-- Name: fleet_attempts_until; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_attempts_until ON public.fleet_attempts USING btree (until) WHERE (state = 'live'::text);


--
-- Name: fleet_boxes_fingerprint; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX fleet_boxes_fingerprint ON public.fleet_boxes USING btree (fingerprint) WHERE (removed = 0);


--
-- Name: fleet_boxes_name; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX fleet_boxes_name ON public.fleet_boxes USING btree (name) WHERE (removed = 0);


--
-- Name: fleet_keys_made; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_keys_made ON public.fleet_keys USING btree (made);


--
-- Name: fleet_parts_queued; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_parts_queued ON public.fleet_parts USING btree (queue, priority, tag, job) WHERE (state = 'queued'::text);


--
-- Name: fleet_parts_run; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX fleet_parts_run ON public.fleet_parts USING btree (run, idx);


--
-- Name: fleet_parts_served; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_parts_served ON public.fleet_parts USING btree (priority, tag) WHERE (attempt > 0);


--
-- Name: fleet_runs_created; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_runs_created ON public.fleet_runs USING btree (created, id);


--
-- Name: fleet_runs_ends; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX fleet_runs_ends ON public.fleet_runs USING btree (ends) WHERE (ends > 0);


--
-- Name: fleet_runs_series; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_runs_series ON public.fleet_runs USING btree (series, state);


--
-- Name: fleet_runs_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_runs_state ON public.fleet_runs USING btree (state, created, id);


--
-- Name: fleet_wants_box; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_wants_box ON public.fleet_wants USING btree (box);


--
-- Name: river_job_args_index; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX river_job_args_index ON public.river_job USING gin (args);


--
-- Name: river_job_kind; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX river_job_kind ON public.river_job USING btree (kind);


--
-- Name: river_job_metadata_index; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX river_job_metadata_index ON public.river_job USING gin (metadata);


--
-- Name: river_job_prioritized_fetching_index; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX river_job_prioritized_fetching_index ON public.river_job USING btree (state, queue, priority, scheduled_at, id);


--
-- Name: river_job_state_and_finalized_at_index; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX river_job_state_and_finalized_at_index ON public.river_job USING btree (state, finalized_at) WHERE (finalized_at IS NOT NULL);


--
-- Name: river_job_unique_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX river_job_unique_idx ON public.river_job USING btree (unique_key) WHERE ((unique_key IS NOT NULL) AND (unique_states IS NOT NULL) AND public.river_job_state_in_bitmask(unique_states, state));


--
-- Name: river_notification_created_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX river_notification_created_at_idx ON public.river_notification USING btree (created_at);


--
-- Name: river_notification_topic_id_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX river_notification_topic_id_idx ON public.river_notification USING btree (topic, id);


--
-- PostgreSQL database dump complete
--


