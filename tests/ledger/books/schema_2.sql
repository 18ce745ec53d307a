CREATE SCHEMA books;
COMMENT ON SCHEMA books IS 'discreet ledger, schema 2';
CREATE FUNCTION books.refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'the books of discreet are append-only' USING ERRCODE = '55000'; END$$;
CREATE TABLE books.accounts (
    path text NOT NULL COLLATE pg_catalog."C",
    budget text COLLATE pg_catalog."C",
    promised text COLLATE pg_catalog."C",
    unit text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    answers text COLLATE pg_catalog."C"
);
CREATE TABLE books.charges (
    sequence bigint NOT NULL,
    dataset text NOT NULL COLLATE pg_catalog."C",
    path text NOT NULL COLLATE pg_catalog."C",
    question text NOT NULL COLLATE pg_catalog."C",
    run text COLLATE pg_catalog."C",
    "time" text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE books.entries (
    sequence bigint NOT NULL,
    text text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE books.head (
    one bigint NOT NULL,
    sequence bigint NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT head_one_check CHECK ((one = 1))
);
CREATE TABLE books.releases (
    charge bigint NOT NULL,
    sequence bigint NOT NULL,
    payload bytea NOT NULL
);
CREATE TABLE books.sources (
    source text NOT NULL COLLATE pg_catalog."C",
    dataset text NOT NULL COLLATE pg_catalog."C"
);
INSERT INTO books.accounts VALUES ('["health","flu study","ann"]', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"1"}', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"1"}', NULL, '{"composition":"renyi","delta_share":"1/2","order":"780357635/33554432","relation":null,"sums":[["151705883714682686664243999657/316912650057057350374175801344","0"],["1/2","0"],["1","19806976987278867614719503879/39614081257132168796771975168"]]}', NULL);
INSERT INTO books.accounts VALUES ('["health","flu study"]', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"2"}', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"2"}', NULL, '{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["647982669293894169888287545089/633825300114114700748351602688","0"],null,null]}', NULL);
INSERT INTO books.accounts VALUES ('["schools","grades"]', '{"definition":"ZCDP","rho":"1/2"}', '{"definition":"ZCDP","rho":"1/2"}', NULL, '{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["9852259833496625454178020495/316912650057057350374175801344"]]}', NULL);
INSERT INTO books.accounts VALUES ('["schools"]', '{"definition":"PureDP","epsilon":"1"}', '{"definition":"PureDP","epsilon":"1"}', '{"kind":"Row","neighbours":"replace"}', '{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["3/8"]]}', NULL);
INSERT INTO books.accounts VALUES ('["health"]', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"4"}', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"4"}', '{"column":"patient","kind":"User","neighbours":"add_remove"}', '{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["2712318393078129451122641169403/3169126500570573503741758013440","0"],null,null]}', NULL);
INSERT INTO books.accounts VALUES ('["health","flu study","bob"]', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3/2"}', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3/2"}', NULL, '{"composition":"renyi","delta_share":"1/2","order":"2210324893/134217728","relation":null,"sums":[["278425016996748751221886613063/396140812571321687967719751680","0"],null,null]}', NULL);
INSERT INTO books.charges VALUES (10, 'health', '["health","flu study","ann"]', '76ef59e3a7bd5a528035d5d8901baf932db2ed0312254c7400fab17c2ff62ed3', '2aaf16d4c6012b2d556443fd866114fe', '2026-11-17T00:10:00.000000+00:00');
INSERT INTO books.charges VALUES (12, 'health', '["health","flu study","bob"]', '54eea8c14bdf4759dc48b85e2ea047835e55c16c5410e2a895e33dd326d11014', '9a43dcd0117a7ea0738d7cdaa9384463', '2026-11-17T00:12:00.000000+00:00');
INSERT INTO books.charges VALUES (14, 'health', '["health","flu study","bob"]', 'a6f22744f0e71beb3905b8892bb8809937e16dc6f3c896f29f04c92a77e035b5', '76a2413755c39f9c8c6677070c87da1a', '2026-11-17T00:14:00.000000+00:00');
INSERT INTO books.charges VALUES (15, 'schools', '["schools","grades"]', '5940a5afcc0cdeb51ed9b5996275a5201fc9aa3bc43586e78d49867ecc4610c9', '1ed5751308fe90d0bf5c3a946a558a1c', '2026-11-17T00:15:00.000000+00:00');
INSERT INTO books.charges VALUES (16, 'schools', '["schools"]', 'd1b3ef78c3785cb6c827dfd316d9b5ef5fc7ed4840de6f9cca4e2fdbe95f0784', '62e25ffbb38eee1f1abc0d668ed07668', '2026-11-17T00:16:00.000000+00:00');
INSERT INTO books.entries VALUES (1, '{"format":1,"id":"524a40057c1aa71570557ec9ca3b2387","kind":"ledger","previous":"","sequence":1,"time":"2026-11-17T00:01:00.000000+00:00"}', 'd899271fb85b98c17a3d3439c858ff6334290aa3926bdfc945ec587818adceb7');
INSERT INTO books.entries VALUES (2, '{"account":["health"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3"},"kind":"open","previous":"d899271fb85b98c17a3d3439c858ff6334290aa3926bdfc945ec587818adceb7","sequence":2,"source":"file:/data/visits.parquet","state":{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["0","0"],["0","0"],["0","0"]]},"time":"2026-11-17T00:02:00.000000+00:00","unit":{"column":"patient","kind":"User","neighbours":"add_remove"}}', 'c5f4d10562f0ca238af89924c1adb047c7a0674ed1240bd72c5fbcf24dc36894');
INSERT INTO books.entries VALUES (3, '{"account":["health","flu study"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"2"},"kind":"open","previous":"c5f4d10562f0ca238af89924c1adb047c7a0674ed1240bd72c5fbcf24dc36894","sequence":3,"state":{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["0","0"],["0","0"],["0","0"]]},"time":"2026-11-17T00:03:00.000000+00:00"}', '9e5663efc411d8eeb75a89b2e70db2d400e97aebd68db43b4c0378d7aae04443');
INSERT INTO books.entries VALUES (4, '{"account":["health","flu study","ann"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"1"},"kind":"open","previous":"9e5663efc411d8eeb75a89b2e70db2d400e97aebd68db43b4c0378d7aae04443","sequence":4,"state":{"composition":"renyi","delta_share":"1/2","order":"780357635/33554432","relation":null,"sums":[["0","0"],["0","0"],["0","0"]]},"time":"2026-11-17T00:04:00.000000+00:00"}', '0b6e2c44360ca2b7e72babe9fd99ba350ad9c74ae1b05b19dac400f3b10fc5e4');
INSERT INTO books.entries VALUES (5, '{"account":["health","flu study","bob"],"budget":null,"kind":"open","previous":"0b6e2c44360ca2b7e72babe9fd99ba350ad9c74ae1b05b19dac400f3b10fc5e4","sequence":5,"state":{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["0","0"],["0","0"],["0","0"]]},"time":"2026-11-17T00:05:00.000000+00:00"}', 'b68a009421a4f7bed1c3a7101466e452a9e9d35d1caa6159f219ad750683c1d9');
INSERT INTO books.entries VALUES (6, '{"account":["schools"],"budget":{"definition":"PureDP","epsilon":"1"},"kind":"open","previous":"b68a009421a4f7bed1c3a7101466e452a9e9d35d1caa6159f219ad750683c1d9","sequence":6,"source":"sha256:5c00","state":{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["0"]]},"time":"2026-11-17T00:06:00.000000+00:00","unit":{"kind":"Row","neighbours":"replace"}}', '7bb07088921ed8c0b9b847db8aa5e3bb58f76ef34f3d7016f74cdcd3ac535648');
INSERT INTO books.entries VALUES (7, '{"account":["schools","grades"],"budget":{"definition":"ZCDP","rho":"1/2"},"kind":"open","previous":"7bb07088921ed8c0b9b847db8aa5e3bb58f76ef34f3d7016f74cdcd3ac535648","sequence":7,"state":{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["0"]]},"time":"2026-11-17T00:07:00.000000+00:00"}', '267db2f0f9c70efcac5349df750b489483b0f535989ce81eafec82d22391359c');
INSERT INTO books.entries VALUES (8, '{"account":["health"],"kind":"attach","note":"the laboratory, of the same patients","previous":"267db2f0f9c70efcac5349df750b489483b0f535989ce81eafec82d22391359c","sequence":8,"source":"file:/data/labs.parquet","time":"2026-11-17T00:08:00.000000+00:00"}', 'aa83e15a80bd7a1ea7688712f1904c0ac4d502a4c069d781579bd945544eb3fe');
INSERT INTO books.entries VALUES (9, '{"key":"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8","kind":"key","previous":"aa83e15a80bd7a1ea7688712f1904c0ac4d502a4c069d781579bd945544eb3fe","sequence":9,"time":"2026-11-17T00:09:00.000000+00:00"}', '06958efc210c965982fc3a5e0876abb70313638f0592b9cbc8bb3225c21910ae');
INSERT INTO books.entries VALUES (10, '{"account":["health","flu study","ann"],"events":[{"kind":"laplace","scale":"2","sensitivity":1}],"kind":"charge","note":"SELECT COUNT(*) FROM visits","previous":"06958efc210c965982fc3a5e0876abb70313638f0592b9cbc8bb3225c21910ae","question":"76ef59e3a7bd5a528035d5d8901baf932db2ed0312254c7400fab17c2ff62ed3","request":"2aaf16d4c6012b2d556443fd866114fe","sequence":10,"spent":"ApproxDP(epsilon=0.499999, delta=1e-06)","states":[{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["140482633106706642005637625031/316912650057057350374175801344","0"],["1/2","0"],["1","19806976987278867614719503879/39614081257132168796771975168"]]},{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["145900118481758828902497613963/316912650057057350374175801344","0"],["1/2","0"],["1","19806976987278867614719503879/39614081257132168796771975168"]]},{"composition":"renyi","delta_share":"1/2","order":"780357635/33554432","relation":null,"sums":[["151705883714682686664243999657/316912650057057350374175801344","0"],["1/2","0"],["1","19806976987278867614719503879/39614081257132168796771975168"]]}],"time":"2026-11-17T00:10:00.000000+00:00"}', '722d5c8670ade29193fdf0248c60f877a34d8c9d4d320c06eb663258004abdf9');
INSERT INTO books.entries VALUES (11, '{"charge":10,"kind":"release","payload":"03ac674216f3e15c761ee1a5e255f067953623c8b388b4459e13f978d7c846f4","previous":"722d5c8670ade29193fdf0248c60f877a34d8c9d4d320c06eb663258004abdf9","sequence":11,"size":4,"time":"2026-11-17T00:11:00.000000+00:00"}', '9ff698010cfa8f8940930e018c44e55b35af73b7875690cbd6d07231ffd8f032');
INSERT INTO books.entries VALUES (12, '{"account":["health","flu study","bob"],"events":[{"dimension":1,"kind":"gaussian","squared_sensitivity":"1","variance":"40"},{"dimension":1,"kind":"gaussian","squared_sensitivity":"1","variance":"40"},{"dimension":1,"kind":"gaussian","squared_sensitivity":"1","variance":"40"}],"kind":"charge","note":"é, three","previous":"9ff698010cfa8f8940930e018c44e55b35af73b7875690cbd6d07231ffd8f032","question":"54eea8c14bdf4759dc48b85e2ea047835e55c16c5410e2a895e33dd326d11014","request":"9a43dcd0117a7ea0738d7cdaa9384463","sequence":12,"spent":"ApproxDP(epsilon=2.14976, delta=5e-07)","states":[{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["1258382567161031877626669058019/1584563250285286751870879006720","0"],null,null]},{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["299983592246642404767422183563/316912650057057350374175801344","0"],null,null]},{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["15069580827/42949672960","0"],null,["1","10797270208874625191/9223372036854775808"]]}],"time":"2026-11-17T00:12:00.000000+00:00"}', 'ffd08a36775237209502401451273fbc00faab5e8b850b57ec0b428b0b57ce8c');
INSERT INTO books.entries VALUES (13, '{"charge":12,"kind":"release","payload":"a6c201ac2a5d1f56142e595cf1321e911544f01c468ea81608bdcbc43c4342df","previous":"ffd08a36775237209502401451273fbc00faab5e8b850b57ec0b428b0b57ce8c","sequence":13,"size":3,"time":"2026-11-17T00:13:00.000000+00:00"}', 'fdbb374ef1a08e4777e3edfa0aa38648340e8a5b72fabaa27b87ca8715da2d61');
INSERT INTO books.entries VALUES (14, '{"account":["health","flu study","bob"],"events":[{"epsilon":"1/8","kind":"pure"}],"kind":"charge","note":"","previous":"fdbb374ef1a08e4777e3edfa0aa38648340e8a5b72fabaa27b87ca8715da2d61","question":"a6f22744f0e71beb3905b8892bb8809937e16dc6f3c896f29f04c92a77e035b5","request":"76a2413755c39f9c8c6677070c87da1a","sequence":14,"spent":"ApproxDP(epsilon=2.21147, delta=5e-07)","states":[{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["2712318393078129451122641169403/3169126500570573503741758013440","0"],null,null]},{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["647982669293894169888287545089/633825300114114700748351602688","0"],null,null]},{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["1307492062011063031066264919093/3169126500570573503741758013440","0"],null,null]}],"time":"2026-11-17T00:14:00.000000+00:00"}', 'd3c4b6262887942c0969871a509dcc5d3954909ccaadac717bdbd3cea8df561a');
INSERT INTO books.entries VALUES (15, '{"account":["schools","grades"],"events":[{"epsilon":"1/4","kind":"pure"}],"kind":"charge","note":"","previous":"d3c4b6262887942c0969871a509dcc5d3954909ccaadac717bdbd3cea8df561a","question":"5940a5afcc0cdeb51ed9b5996275a5201fc9aa3bc43586e78d49867ecc4610c9","request":"1ed5751308fe90d0bf5c3a946a558a1c","sequence":15,"spent":"PureDP(epsilon=0.25)","states":[{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["1/4"]]},{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["9852259833496625454178020495/316912650057057350374175801344"]]}],"time":"2026-11-17T00:15:00.000000+00:00"}', 'ec898251f9fb33dcfe6f87c779be74d0242b604ca54697b36fabfd09789a6a01');
INSERT INTO books.entries VALUES (16, '{"account":["schools"],"events":[{"epsilon":"1/8","kind":"pure"}],"kind":"charge","note":"","previous":"ec898251f9fb33dcfe6f87c779be74d0242b604ca54697b36fabfd09789a6a01","question":"d1b3ef78c3785cb6c827dfd316d9b5ef5fc7ed4840de6f9cca4e2fdbe95f0784","request":"62e25ffbb38eee1f1abc0d668ed07668","sequence":16,"spent":"PureDP(epsilon=0.375)","states":[{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["3/8"]]}],"time":"2026-11-17T00:16:00.000000+00:00"}', '261b36134ed37a003822220dbdb60cd1e8e93c2e72482a32359bbfcdbf6a60ba');
INSERT INTO books.entries VALUES (17, '{"charge":16,"kind":"release","payload":"5d28a90f4498a81461efbaf6f628a19d9778390bb5c81a393dd936181cc3d826","previous":"261b36134ed37a003822220dbdb60cd1e8e93c2e72482a32359bbfcdbf6a60ba","sequence":17,"size":6,"time":"2026-11-17T00:17:00.000000+00:00"}', '043fabbdc1f95b4a91920cb9fb0787e4a37d3a91e6b59e016787a5f59aee8802');
INSERT INTO books.entries VALUES (18, '{"account":["health"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"4"},"former":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3"},"kind":"amend","note":"a new consent","previous":"043fabbdc1f95b4a91920cb9fb0787e4a37d3a91e6b59e016787a5f59aee8802","sequence":18,"state":{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["2712318393078129451122641169403/3169126500570573503741758013440","0"],null,null]},"time":"2026-11-17T00:18:00.000000+00:00"}', '156f01d29817179087dfbae17d2819e791321f7a9832844f3ca568c1e5580cbc');
INSERT INTO books.entries VALUES (19, '{"account":["health","flu study","bob"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3/2"},"former":null,"kind":"amend","note":"","previous":"156f01d29817179087dfbae17d2819e791321f7a9832844f3ca568c1e5580cbc","sequence":19,"state":{"composition":"renyi","delta_share":"1/2","order":"2210324893/134217728","relation":null,"sums":[["278425016996748751221886613063/396140812571321687967719751680","0"],null,null]},"time":"2026-11-17T00:19:00.000000+00:00"}', 'fe1c4d3e0936a3417b95f67b5d468e7a6a2c9679acc97454682e923f9ac6c2e2');
INSERT INTO books.head VALUES (1, 19, 'fe1c4d3e0936a3417b95f67b5d468e7a6a2c9679acc97454682e923f9ac6c2e2');
INSERT INTO books.releases VALUES (10, 11, '\x31323334');
INSERT INTO books.releases VALUES (12, 13, '\x00ff37');
INSERT INTO books.releases VALUES (16, 17, '\x6661696c6564');
INSERT INTO books.sources VALUES ('file:/data/visits.parquet', 'health');
INSERT INTO books.sources VALUES ('sha256:5c00', 'schools');
INSERT INTO books.sources VALUES ('file:/data/labs.parquet', 'health');
ALTER TABLE ONLY books.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (path);
ALTER TABLE ONLY books.charges
    ADD CONSTRAINT charges_dataset_question_key UNIQUE (dataset, question);
ALTER TABLE ONLY books.charges
    ADD CONSTRAINT charges_dataset_request_key UNIQUE (dataset, run);
ALTER TABLE ONLY books.charges
    ADD CONSTRAINT charges_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY books.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY books.head
    ADD CONSTRAINT head_pkey PRIMARY KEY (one);
ALTER TABLE ONLY books.releases
    ADD CONSTRAINT releases_pkey PRIMARY KEY (charge);
ALTER TABLE ONLY books.sources
    ADD CONSTRAINT sources_pkey PRIMARY KEY (source);
CREATE TRIGGER append_only BEFORE DELETE ON books.accounts FOR EACH ROW EXECUTE FUNCTION books.refuse();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON books.charges FOR EACH ROW EXECUTE FUNCTION books.refuse();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON books.entries FOR EACH ROW EXECUTE FUNCTION books.refuse();
CREATE TRIGGER append_only BEFORE DELETE ON books.head FOR EACH ROW EXECUTE FUNCTION books.refuse();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON books.releases FOR EACH ROW EXECUTE FUNCTION books.refuse();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON books.sources FOR EACH ROW EXECUTE FUNCTION books.refuse();
CREATE TRIGGER never_empty BEFORE TRUNCATE ON books.accounts FOR EACH STATEMENT EXECUTE FUNCTION books.refuse();
CREATE TRIGGER never_empty BEFORE TRUNCATE ON books.charges FOR EACH STATEMENT EXECUTE FUNCTION books.refuse();
CREATE TRIGGER never_empty BEFORE TRUNCATE ON books.entries FOR EACH STATEMENT EXECUTE FUNCTION books.refuse();
CREATE TRIGGER never_empty BEFORE TRUNCATE ON books.head FOR EACH STATEMENT EXECUTE FUNCTION books.refuse();
CREATE TRIGGER never_empty BEFORE TRUNCATE ON books.releases FOR EACH STATEMENT EXECUTE FUNCTION books.refuse();
CREATE TRIGGER never_empty BEFORE TRUNCATE ON books.sources FOR EACH STATEMENT EXECUTE FUNCTION books.refuse();
