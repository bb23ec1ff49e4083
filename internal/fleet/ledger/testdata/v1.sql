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
    n bigint NOT NULL,
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
    tries bigint DEFAULT 0 NOT NULL,
    due bigint DEFAULT 0 NOT NULL,
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
-- Name: fleet_settings; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_settings (
    name text NOT NULL,
    value text NOT NULL
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
-- Data for Name: fleet_attempts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_attempts VALUES ('ended', 1, 'box-RB7KDAUBQPVGHG6Y', 'a', '341c0a3e67c3146720fa1b9504927ece5f5daefadaad467dddfd2ff04ba039be', '74b85deeb1d72953e9a8e204456c93022c8f53d676a69801cf4561d180b4bb1f', '191a14bf370ba7d25de89b050f16a9b3234d17c8f6a472d5b5108ccd3b02159a', 'ended', 1795510980000000000, 1795510800000000000, 1795510800000000000, '', '{}', '[{"path":"run.json","bytes":1,"sha256":"2dfe744f64b97238df644a0ef96b7f245bb6ffc7519b726824c0753e6e3797c4"}]');
INSERT INTO public.fleet_attempts VALUES ('going.01', 1, 'box-RB7KDAUBQPVGHG6Y', 'a', 'c75de8c1b7c3ae5252091267a736a9bf57001d80e82668b3cb3cd09e2f6a43cb', '89d31782d71bf80f7abef9606759958ab95f3df478ea76c051386321d64aff57', '20d859d215bd4845ee4f07288d654953c81cf43f83ff5c183bce4f461d15f75c', 'live', 1795510980000000000, 1795510800000000000, 0, '', '{}', '[{"path":"trials/001/trial.json","bytes":1,"sha256":"c942135dda143efc2782a083401592de753c2b63826a4e45e83a9d4d816ba667"}]');


--
-- Data for Name: fleet_boxes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_boxes VALUES ('box-RB7KDAUBQPVGHG6Y', 'one', 'print-one', 1795510800000000000, 1795510800000000000, '{"software":"1","cores":2,"memory_bytes":0,"devices":[{"name":"a","kind":"virtual","ready":true,"browsers":["chromium"]},{"name":"b","kind":"virtual","ready":true,"browsers":["chromium"]}]}', '{}', 'unknown', '', 0);


--
-- Data for Name: fleet_codes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_codes VALUES ('ae52614789a8cb161cc47b6a454b195b226a9327b5ddb9e64337d3eefcbd9a48', 'test', 1795510800000000000, 1795514400000000000, 'box-RB7KDAUBQPVGHG6Y');


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
INSERT INTO public.fleet_parts VALUES ('going.02', 'going', 1, '{"name":"going","trials":1}', 'null', '{"boxes":["two"]}', '[]', 'need-f1de149cd6c15c2bcf4d', 'queued', 3, 2, 3, 0, '', 0);
INSERT INTO public.fleet_parts VALUES ('going.01', 'going', 0, '{"name":"going","trials":1}', 'null', '{}', '[]', 'need-44136fa355b3678a1146', 'running', 3, 1, 2, 1, '', 0);
INSERT INTO public.fleet_parts VALUES ('waiting', 'waiting', 0, '{"name":"waiting","trials":1}', 'null', '{}', '[]', 'need-44136fa355b3678a1146', 'queued', 3, 1, 4, 0, '', 0);


--
-- Data for Name: fleet_readings; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_readings VALUES ('box-RB7KDAUBQPVGHG6Y', 'a', 1, 1795510800000000000, '{}');


--
-- Data for Name: fleet_runs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_runs VALUES ('ended', '{"name":"ended","trials":1}', 'x', 3, '', 'assembling', '', 1795510800000000000, 1795510800000000000, 0, 0, 0, 0, 0, 0, '[]');
INSERT INTO public.fleet_runs VALUES ('going', '{"name":"going","trials":1}', 'x', 3, '', 'running', '', 1795510800000000000, 1795510800000000000, 0, 0, 2, 0, 0, 0, '[]');
INSERT INTO public.fleet_runs VALUES ('waiting', '{"name":"waiting","trials":1}', 'y', 3, '', 'queued', '', 1795510800000000000, 0, 0, 0, 1, 0, 0, 0, '[]');


--
-- Data for Name: fleet_series; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_series VALUES ('x', 3, 3);
INSERT INTO public.fleet_series VALUES ('y', 3, 2);


--
-- Data for Name: fleet_settings; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: fleet_state; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_state VALUES ('ends', 0);
INSERT INTO public.fleet_state VALUES ('clock-1', 0);
INSERT INTO public.fleet_state VALUES ('clock-2', 0);
INSERT INTO public.fleet_state VALUES ('clock-4', 0);
INSERT INTO public.fleet_state VALUES ('alive', 1795510800000000000);
INSERT INTO public.fleet_state VALUES ('clock-3', 1);
INSERT INTO public.fleet_state VALUES ('adding', 4);


--
-- Data for Name: fleet_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_version VALUES (1);


--
-- Data for Name: fleet_wants; Type: TABLE DATA; Schema: public; Owner: -
--



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
-- Name: fleet_settings fleet_settings_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_settings
    ADD CONSTRAINT fleet_settings_pkey PRIMARY KEY (name);


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

CREATE INDEX fleet_parts_queued ON public.fleet_parts USING btree (queue, priority, tag, n) WHERE (state = 'queued'::text);


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
-- Name: fleet_runs_due; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX fleet_runs_due ON public.fleet_runs USING btree (due, id) WHERE (state = 'assembling'::text);


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
-- PostgreSQL database dump complete
--


