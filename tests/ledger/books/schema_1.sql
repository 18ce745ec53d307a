CREATE SCHEMA books;
COMMENT ON SCHEMA books IS 'discreet ledger, schema 1';
CREATE FUNCTION books.refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'the books of discreet are append-only' USING ERRCODE = '55000'; END$$;
CREATE TABLE books.accounts (
    path text NOT NULL COLLATE pg_catalog."C",
    budget text COLLATE pg_catalog."C",
    promised text COLLATE pg_catalog."C",
    unit text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE books.charges (
    sequence bigint NOT NULL,
    dataset text NOT NULL COLLATE pg_catalog."C",
    path text NOT NULL COLLATE pg_catalog."C",
    question text NOT NULL COLLATE pg_catalog."C",
    request text COLLATE pg_catalog."C",
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
INSERT INTO books.accounts VALUES ('["health","flu study","ann"]', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"1"}', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"1"}', NULL, '{"composition":"renyi","delta_share":"1/2","order":"780357635/33554432","relation":null,"sums":[["151705883714682686664243999657/316912650057057350374175801344","0"],["1/2","0"],["1","19806976987278867614719503879/39614081257132168796771975168"]]}');
INSERT INTO books.accounts VALUES ('["health","flu study"]', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"2"}', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"2"}', NULL, '{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["647982669293894169888287545089/633825300114114700748351602688","0"],null,null]}');
INSERT INTO books.accounts VALUES ('["schools","grades"]', '{"definition":"ZCDP","rho":"1/2"}', '{"definition":"ZCDP","rho":"1/2"}', NULL, '{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["9852259833496625454178020495/316912650057057350374175801344"]]}');
INSERT INTO books.accounts VALUES ('["schools"]', '{"definition":"PureDP","epsilon":"1"}', '{"definition":"PureDP","epsilon":"1"}', '{"kind":"Row","neighbours":"replace"}', '{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["3/8"]]}');
INSERT INTO books.accounts VALUES ('["health"]', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"4"}', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"4"}', '{"column":"patient","kind":"User","neighbours":"add_remove"}', '{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["2712318393078129451122641169403/3169126500570573503741758013440","0"],null,null]}');
INSERT INTO books.accounts VALUES ('["health","flu study","bob"]', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3/2"}', '{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3/2"}', NULL, '{"composition":"renyi","delta_share":"1/2","order":"2210324893/134217728","relation":null,"sums":[["278425016996748751221886613063/396140812571321687967719751680","0"],null,null]}');
INSERT INTO books.charges VALUES (10, 'health', '["health","flu study","ann"]', '76ef59e3a7bd5a528035d5d8901baf932db2ed0312254c7400fab17c2ff62ed3', NULL, '2026-11-17T00:10:00.000000+00:00');
INSERT INTO books.charges VALUES (12, 'health', '["health","flu study","bob"]', '54eea8c14bdf4759dc48b85e2ea047835e55c16c5410e2a895e33dd326d11014', NULL, '2026-11-17T00:12:00.000000+00:00');
INSERT INTO books.charges VALUES (14, 'health', '["health","flu study","bob"]', 'a6f22744f0e71beb3905b8892bb8809937e16dc6f3c896f29f04c92a77e035b5', 'r-1', '2026-11-17T00:14:00.000000+00:00');
INSERT INTO books.charges VALUES (15, 'schools', '["schools","grades"]', '5940a5afcc0cdeb51ed9b5996275a5201fc9aa3bc43586e78d49867ecc4610c9', NULL, '2026-11-17T00:15:00.000000+00:00');
INSERT INTO books.charges VALUES (16, 'schools', '["schools"]', 'd1b3ef78c3785cb6c827dfd316d9b5ef5fc7ed4840de6f9cca4e2fdbe95f0784', NULL, '2026-11-17T00:16:00.000000+00:00');
INSERT INTO books.entries VALUES (1, '{"format":1,"id":"524a40057c1aa71570557ec9ca3b2387","kind":"ledger","previous":"","sequence":1,"time":"2026-11-17T00:01:00.000000+00:00"}', 'd899271fb85b98c17a3d3439c858ff6334290aa3926bdfc945ec587818adceb7');
INSERT INTO books.entries VALUES (2, '{"account":["health"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3"},"kind":"open","previous":"d899271fb85b98c17a3d3439c858ff6334290aa3926bdfc945ec587818adceb7","sequence":2,"source":"file:/data/visits.parquet","state":{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["0","0"],["0","0"],["0","0"]]},"time":"2026-11-17T00:02:00.000000+00:00","unit":{"column":"patient","kind":"User","neighbours":"add_remove"}}', 'c5f4d10562f0ca238af89924c1adb047c7a0674ed1240bd72c5fbcf24dc36894');
INSERT INTO books.entries VALUES (3, '{"account":["health","flu study"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"2"},"kind":"open","previous":"c5f4d10562f0ca238af89924c1adb047c7a0674ed1240bd72c5fbcf24dc36894","sequence":3,"state":{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["0","0"],["0","0"],["0","0"]]},"time":"2026-11-17T00:03:00.000000+00:00"}', '9e5663efc411d8eeb75a89b2e70db2d400e97aebd68db43b4c0378d7aae04443');
INSERT INTO books.entries VALUES (4, '{"account":["health","flu study","ann"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"1"},"kind":"open","previous":"9e5663efc411d8eeb75a89b2e70db2d400e97aebd68db43b4c0378d7aae04443","sequence":4,"state":{"composition":"renyi","delta_share":"1/2","order":"780357635/33554432","relation":null,"sums":[["0","0"],["0","0"],["0","0"]]},"time":"2026-11-17T00:04:00.000000+00:00"}', '0b6e2c44360ca2b7e72babe9fd99ba350ad9c74ae1b05b19dac400f3b10fc5e4');
INSERT INTO books.entries VALUES (5, '{"account":["health","flu study","bob"],"budget":null,"kind":"open","previous":"0b6e2c44360ca2b7e72babe9fd99ba350ad9c74ae1b05b19dac400f3b10fc5e4","sequence":5,"state":{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["0","0"],["0","0"],["0","0"]]},"time":"2026-11-17T00:05:00.000000+00:00"}', 'b68a009421a4f7bed1c3a7101466e452a9e9d35d1caa6159f219ad750683c1d9');
INSERT INTO books.entries VALUES (6, '{"account":["schools"],"budget":{"definition":"PureDP","epsilon":"1"},"kind":"open","previous":"b68a009421a4f7bed1c3a7101466e452a9e9d35d1caa6159f219ad750683c1d9","sequence":6,"source":"sha256:5c00","state":{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["0"]]},"time":"2026-11-17T00:06:00.000000+00:00","unit":{"kind":"Row","neighbours":"replace"}}', '7bb07088921ed8c0b9b847db8aa5e3bb58f76ef34f3d7016f74cdcd3ac535648');
INSERT INTO books.entries VALUES (7, '{"account":["schools","grades"],"budget":{"definition":"ZCDP","rho":"1/2"},"kind":"open","previous":"7bb07088921ed8c0b9b847db8aa5e3bb58f76ef34f3d7016f74cdcd3ac535648","sequence":7,"state":{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["0"]]},"time":"2026-11-17T00:07:00.000000+00:00"}', '267db2f0f9c70efcac5349df750b489483b0f535989ce81eafec82d22391359c');
INSERT INTO books.entries VALUES (8, '{"account":["health"],"kind":"attach","note":"the laboratory, of the same patients","previous":"267db2f0f9c70efcac5349df750b489483b0f535989ce81eafec82d22391359c","sequence":8,"source":"file:/data/labs.parquet","time":"2026-11-17T00:08:00.000000+00:00"}', 'aa83e15a80bd7a1ea7688712f1904c0ac4d502a4c069d781579bd945544eb3fe');
INSERT INTO books.entries VALUES (9, '{"key":"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8","kind":"key","previous":"aa83e15a80bd7a1ea7688712f1904c0ac4d502a4c069d781579bd945544eb3fe","sequence":9,"time":"2026-11-17T00:09:00.000000+00:00"}', '06958efc210c965982fc3a5e0876abb70313638f0592b9cbc8bb3225c21910ae');
INSERT INTO books.entries VALUES (10, '{"account":["health","flu study","ann"],"events":[{"kind":"laplace","scale":"2","sensitivity":1}],"kind":"charge","note":"SELECT COUNT(*) FROM visits","previous":"06958efc210c965982fc3a5e0876abb70313638f0592b9cbc8bb3225c21910ae","question":"76ef59e3a7bd5a528035d5d8901baf932db2ed0312254c7400fab17c2ff62ed3","request":null,"sequence":10,"spent":"ApproxDP(epsilon=0.499999, delta=1e-06)","states":[{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["140482633106706642005637625031/316912650057057350374175801344","0"],["1/2","0"],["1","19806976987278867614719503879/39614081257132168796771975168"]]},{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["145900118481758828902497613963/316912650057057350374175801344","0"],["1/2","0"],["1","19806976987278867614719503879/39614081257132168796771975168"]]},{"composition":"renyi","delta_share":"1/2","order":"780357635/33554432","relation":null,"sums":[["151705883714682686664243999657/316912650057057350374175801344","0"],["1/2","0"],["1","19806976987278867614719503879/39614081257132168796771975168"]]}],"time":"2026-11-17T00:10:00.000000+00:00"}', 'dcbc99077dd9b1839868b3472acd8cad1c8b8ec6f46cd3538f9ff5642d12f25c');
INSERT INTO books.entries VALUES (11, '{"charge":10,"kind":"release","payload":"03ac674216f3e15c761ee1a5e255f067953623c8b388b4459e13f978d7c846f4","previous":"dcbc99077dd9b1839868b3472acd8cad1c8b8ec6f46cd3538f9ff5642d12f25c","sequence":11,"size":4,"time":"2026-11-17T00:11:00.000000+00:00"}', 'a9a529cd60578ea95dab8075c73eca422d99d23de9def95584db105bd2a406f1');
INSERT INTO books.entries VALUES (12, '{"account":["health","flu study","bob"],"events":[{"dimension":1,"kind":"gaussian","squared_sensitivity":"1","variance":"40"},{"dimension":1,"kind":"gaussian","squared_sensitivity":"1","variance":"40"},{"dimension":1,"kind":"gaussian","squared_sensitivity":"1","variance":"40"}],"kind":"charge","note":"é, three","previous":"a9a529cd60578ea95dab8075c73eca422d99d23de9def95584db105bd2a406f1","question":"54eea8c14bdf4759dc48b85e2ea047835e55c16c5410e2a895e33dd326d11014","request":null,"sequence":12,"spent":"ApproxDP(epsilon=2.14976, delta=5e-07)","states":[{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["1258382567161031877626669058019/1584563250285286751870879006720","0"],null,null]},{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["299983592246642404767422183563/316912650057057350374175801344","0"],null,null]},{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["15069580827/42949672960","0"],null,["1","10797270208874625191/9223372036854775808"]]}],"time":"2026-11-17T00:12:00.000000+00:00"}', '668d3da37ebabd62f33ba8a7bbbfab1d8a9a819333f7405937ebfebc13591729');
INSERT INTO books.entries VALUES (13, '{"charge":12,"kind":"release","payload":"a6c201ac2a5d1f56142e595cf1321e911544f01c468ea81608bdcbc43c4342df","previous":"668d3da37ebabd62f33ba8a7bbbfab1d8a9a819333f7405937ebfebc13591729","sequence":13,"size":3,"time":"2026-11-17T00:13:00.000000+00:00"}', 'bc5742025487e3e826f59b5330d0336e9016177fdf22dd2f29e499a533f6ef73');
INSERT INTO books.entries VALUES (14, '{"account":["health","flu study","bob"],"events":[{"epsilon":"1/8","kind":"pure"}],"kind":"charge","note":"","previous":"bc5742025487e3e826f59b5330d0336e9016177fdf22dd2f29e499a533f6ef73","question":"a6f22744f0e71beb3905b8892bb8809937e16dc6f3c896f29f04c92a77e035b5","request":"r-1","sequence":14,"spent":"ApproxDP(epsilon=2.21147, delta=5e-07)","states":[{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["2712318393078129451122641169403/3169126500570573503741758013440","0"],null,null]},{"composition":"renyi","delta_share":"1/2","order":"6960734875/536870912","relation":null,"sums":[["647982669293894169888287545089/633825300114114700748351602688","0"],null,null]},{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["1307492062011063031066264919093/3169126500570573503741758013440","0"],null,null]}],"time":"2026-11-17T00:14:00.000000+00:00"}', '4edaa418b00997ceb1bb2a3d3d83d83ef844e4f9e2ce8be51c090092e252fc12');
INSERT INTO books.entries VALUES (15, '{"account":["schools","grades"],"events":[{"epsilon":"1/4","kind":"pure"}],"kind":"charge","note":"","previous":"4edaa418b00997ceb1bb2a3d3d83d83ef844e4f9e2ce8be51c090092e252fc12","question":"5940a5afcc0cdeb51ed9b5996275a5201fc9aa3bc43586e78d49867ecc4610c9","request":null,"sequence":15,"spent":"PureDP(epsilon=0.25)","states":[{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["1/4"]]},{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["9852259833496625454178020495/316912650057057350374175801344"]]}],"time":"2026-11-17T00:15:00.000000+00:00"}', '59f53faf5861fbcd118522e59766d2ac80f65fe596ee1e92028c986b21cc6dd2');
INSERT INTO books.entries VALUES (16, '{"account":["schools"],"events":[{"epsilon":"1/8","kind":"pure"}],"kind":"charge","note":"","previous":"59f53faf5861fbcd118522e59766d2ac80f65fe596ee1e92028c986b21cc6dd2","question":"d1b3ef78c3785cb6c827dfd316d9b5ef5fc7ed4840de6f9cca4e2fdbe95f0784","request":null,"sequence":16,"spent":"PureDP(epsilon=0.375)","states":[{"composition":null,"delta_share":"1/2","order":null,"relation":null,"sums":[["3/8"]]}],"time":"2026-11-17T00:16:00.000000+00:00"}', '68609d4ab6333b3ebefc25e3a04ef3b7b89b4ff1f08f3459d10c453a7aa1679d');
INSERT INTO books.entries VALUES (17, '{"charge":16,"kind":"release","payload":"5d28a90f4498a81461efbaf6f628a19d9778390bb5c81a393dd936181cc3d826","previous":"68609d4ab6333b3ebefc25e3a04ef3b7b89b4ff1f08f3459d10c453a7aa1679d","sequence":17,"size":6,"time":"2026-11-17T00:17:00.000000+00:00"}', '8320cb07088b733885be18c4364548bff49896ee2b7e6c245acdbc5eec2fdba1');
INSERT INTO books.entries VALUES (18, '{"account":["health"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"4"},"former":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3"},"kind":"amend","note":"a new consent","previous":"8320cb07088b733885be18c4364548bff49896ee2b7e6c245acdbc5eec2fdba1","sequence":18,"state":{"composition":"renyi","delta_share":"1/2","order":"5023193609/536870912","relation":null,"sums":[["2712318393078129451122641169403/3169126500570573503741758013440","0"],null,null]},"time":"2026-11-17T00:18:00.000000+00:00"}', 'dbdca7b00e9666c1a5c93c775ecdcd85b0dc936855c7fbc9214e92d59b60d7a6');
INSERT INTO books.entries VALUES (19, '{"account":["health","flu study","bob"],"budget":{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3/2"},"former":null,"kind":"amend","note":"","previous":"dbdca7b00e9666c1a5c93c775ecdcd85b0dc936855c7fbc9214e92d59b60d7a6","sequence":19,"state":{"composition":"renyi","delta_share":"1/2","order":"2210324893/134217728","relation":null,"sums":[["278425016996748751221886613063/396140812571321687967719751680","0"],null,null]},"time":"2026-11-17T00:19:00.000000+00:00"}', '42577f5ec9b61ff693164916b04d3f2ef14a485daa4f07eb6bc840818400cb8f');
INSERT INTO books.head VALUES (1, 19, '42577f5ec9b61ff693164916b04d3f2ef14a485daa4f07eb6bc840818400cb8f');
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
    ADD CONSTRAINT charges_dataset_request_key UNIQUE (dataset, request);
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
