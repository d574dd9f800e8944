/** A console over real HTTP: its routes, guards, bounds and interrupts. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Protect from "@skein/auth/Protect"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Client from "@skein/client/Client"
import * as Console from "@skein/console/Console"
import * as ConsoleSource from "@skein/console/ConsoleSource"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import { readFileSync } from "node:fs"
import { request } from "node:http"
import { pageModule, target } from "../../../scripts/consolePage.ts"
import type { Acted, Interrupted, Row, Rows, Tree } from "../src/internal/messages.ts"
import { counted } from "../../protocol/test/reads.ts"
import { clipJson, makeServerSource } from "../src/internal/serverSource.ts"
import * as kit from "./kit.ts"

/** The failure of a source. */
class StoreError extends Data.TaggedError("StoreError")<{ readonly message: string }> {}

const readTree = async (url: string, headers: Record<string, string> = {}): Promise<Tree> =>
  (await fetch(new URL("tree", url), { headers })).json() as Promise<Tree>

const rowsOf = async (url: string): Promise<ReadonlyArray<Row>> => (await readTree(url)).rows

const interrupt = async (url: string, id: string, more: object = {}): Promise<Interrupted> => {
  const { instance } = await readTree(url)
  const response = await fetch(new URL("interrupt", url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ instance, id, ...more })
  })
  return await response.json() as Interrupted
}

const act = async (url: string, id: string, action: string, more: object = {}): Promise<Acted> => {
  const { instance } = await readTree(url)
  const response = await fetch(new URL("act", url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ instance, id, action, ...more })
  })
  return await response.json() as Acted
}

/** Reads the events of a stream one by one. */
const events = async function*(
  url: string,
  signal: AbortSignal
): AsyncGenerator<{ readonly event: string; readonly data: any }> {
  const response = await fetch(new URL("events", url), { signal })
  let text = ""
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n")
      text = text.slice(end + 2)
      const of = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
      const event = of("event")
      if (event !== undefined) yield { event, data: JSON.parse(of("data")!) }
    }
  }
}

/** The status of a request with any headers: `fetch` does not send all of them. */
const status = (url: string, path: string, headers: Record<string, string>, method = "GET", body?: string) =>
  new Promise<number>((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      response.destroy()
      resolve(response.statusCode!)
    })
    sent.on("error", reject)
    sent.end(body)
  })

const live = <A, E>(title: string, effect: () => Effect.Effect<A, E, never>) => it.live(title, effect)
const scoped = Effect.scoped

describe("the tree", () => {
  it.effect("has the requests per second and the last failures of a server without sessions", () =>
    scoped(Effect.gen(function*() {
      const server = Context.get(yield* Layer.build(kit.tea), McpServer.McpServer)
      const source = makeServerSource(server, 100)
      const query = { limit: 10, maxRows: 100, showPayloads: false }
      const rows = Effect.map(source.read(query), ({ nodes }) => nodes)
      const summary = Effect.map(rows, ([node]) => node!.summary)
      expect(yield* summary).toBe(undefined)
      const client = yield* Client.make(InMemoryTransport.transport(server.serve), { revisions: ["2026-07-28"] })
      for (let call = 0; call < 9; call++) yield* client.readResource("tea://menu")
      yield* Effect.flip(client.callTool("juggle"))
      yield* TestClock.adjust("2 seconds")
      // With the request that discovers the server.
      expect(yield* summary).toBe("5.5 requests per second, 11 answered, 1 failed")
      for (let failure = 0; failure < 30; failure++) yield* Effect.flip(client.readResource(`tea://${failure}`))
      const failures = (yield* rows).filter(({ parent }) => parent === "failures")
      expect(failures.length).toBe(20)
      expect(failures[0]).toMatchObject({
        kind: "failure",
        label: "resources/read tea://29",
        state: "failed",
        summary: expect.stringContaining("-32602")
      })
    })))

  live(
    "has sessions, requests, questions, queued requests, streams and subscriptions, with principal and trace",
    () =>
      scoped(Effect.gen(function*() {
        const { console: { url: at }, url } = yield* kit.open()
        const signal = yield* kit.signal
        const rows = yield* Effect.promise(async () => {
          const ada = await kit.visit(url, signal, { name: "Teapot", user: "ada", capabilities: { elicitation: {} } })
          kit.leave(ada.call("tools/call", { name: "taste" }))
          kit.leave(ada.call("tools/call", { name: "brew", arguments: { tea: "Assam" }, _meta: { progressToken: 1 } }))
          await kit.until(async () => (await rowsOf(at)).filter(({ kind }) => kind === "request").length === 2)
          kit.leave(ada.call("tools/call", { name: "brew", arguments: { tea: "Oolong" } }))
          kit.leave(ada.listen())
          const listen = { notifications: { resourceSubscriptions: ["tea://menu"] } }
          kit.leave(kit.ask(url, signal, "subscriptions/listen", listen, { "x-user": "lin" }))
          await kit.until(async () => {
            const kinds = (await rowsOf(at)).map(({ kind, state }) => `${kind} ${state}`)
            return kinds.includes("request queued") && kinds.filter((kind) =>
                  kind.startsWith("subscription")
                ).length === 2 &&
              kinds.filter((kind) => kind.startsWith("stream")).length === 3
          })
          return rowsOf(at)
        })
        const find = (kind: string, label: string) => rows.find((row) => row.kind === kind && row.label === label)!
        const server = find("server", "tea house 1.2.0")
        const session = find("session", "Teapot 3.1")
        assert.strictEqual(session.parent, server.id)
        expect(session).toMatchObject({ state: "running", principal: "ada", canInterrupt: true })
        expect(session.details).toMatchObject({ transport: "Streamable HTTP", revision: "2025-11-25", queued: 1 })
        const taste = find("request", "tools/call taste")
        expect(taste).toMatchObject({ parent: session.id, state: "waiting", waitsFor: "the answer of a person" })
        const question = find("question", "elicitation/create")
        expect(question).toMatchObject({ parent: taste.id, traceId: taste.traceId, principal: "ada" })
        expect(find("request", "tools/call brew")).toMatchObject({
          state: "running",
          progress: { progress: 3, total: 8, message: "the leaves unfold" },
          traceId: expect.stringMatching(/^[\da-f]{32}$/),
          since: expect.any(Number)
        })
        expect(rows.find(({ state }) => state === "queued")).toMatchObject({
          label: "tools/call brew",
          parent: session.id
        })
        const listen = find("subscription", "subscriptions/listen")
        expect(listen).toMatchObject({ principal: "lin", details: { resources: 1, client: "Stateless guest 0.9" } })
        expect(find("subscription", "tea://menu").parent).toBe(listen.id)
        expect(find("stream", "stream for notifications")).toMatchObject({ parent: session.id, state: "running" })
        // The brewing has reported progress, and the tasting has asked: both are answered by a stream.
        expect(find("stream", "stream of the response").parent).toMatch(/^server:r/)
        const text = JSON.stringify(rows)
        assert.notInclude(text, "Assam")
        assert.notInclude(text, "Oolong")
      }))
  )

  live("has the arguments of requests with showPayloads, up to maxPayloadChars", () =>
    scoped(Effect.gen(function*() {
      const { console: { url: at }, url } = yield* kit.open({ showPayloads: true }, undefined, { maxPayloadChars: 300 })
      const signal = yield* kit.signal
      kit.leave(kit.ask(url, signal, "tools/call", { name: "brew", arguments: { tea: "x".repeat(1_000) } }))
      yield* Effect.promise(() => kit.until(async () => (await rowsOf(at)).some(({ kind }) => kind === "request")))
      const rows = yield* Effect.promise(() => rowsOf(at))
      const shown = rows.find(({ kind }) => kind === "request")!.details!["arguments"] as string
      assert.isTrue(shown.startsWith("{\"name\":\"brew\""))
      assert.strictEqual(shown.length, 301)
    })))

  live("escapes control characters of clients, and shortens their names", () =>
    scoped(Effect.gen(function*() {
      const { console: { url: at }, url } = yield* kit.open()
      const signal = yield* kit.signal
      yield* Effect.promise(() => kit.visit(url, signal, { name: `\u001b[2Jevil\u202e${"n".repeat(999)}` }))
      const session = (yield* Effect.promise(() => rowsOf(at))).find(({ kind }) => kind === "session")!
      assert.isTrue(session.label.startsWith("\\u{1b}[2Jevil\\u{202e}nnn"))
      assert.isBelow(session.label.length, 230)
    })))
})

describe("interrupts", () => {
  live("answers an interrupted request with an error, and closes a session", () =>
    scoped(Effect.gen(function*() {
      const { console: { url: at }, url } = yield* kit.open()
      const signal = yield* kit.signal
      yield* Effect.promise(async () => {
        const ada = await kit.visit(url, signal)
        const answer = ada.call("tools/call", { name: "brew", arguments: { tea: "Assam" } })
        const stateless = kit.ask(url, signal, "tools/call", { name: "brew", arguments: { tea: "Assam" } })
        await kit.until(async () => (await rowsOf(at)).filter(({ kind }) => kind === "request").length === 2)
        for (const { id, kind } of await rowsOf(at)) {
          if (kind === "request") assert.deepEqual(await interrupt(at, id), { outcome: "Interrupted" })
        }
        for (const response of await Promise.all([answer, stateless])) {
          const text = await response.text()
          const message = JSON.parse(/\{.*\}/.exec(text)![0])
          expect(message.error).toEqual({
            code: -32603,
            message:
              "Interrupted: the request was interrupted by the operator of the server and may have run: check that before you send it again"
          })
        }
        await kit.until(async () => !(await rowsOf(at)).some(({ kind }) => kind === "request"))
        const session = (await rowsOf(at)).find(({ kind }) => kind === "session")!
        assert.deepEqual(await interrupt(at, session.id), { outcome: "Interrupted" })
        assert.strictEqual((await ada.call("ping")).status, 404)
        assert.deepEqual(await interrupt(at, session.id), { outcome: "NotFound" })
      })
    })))

  live(
    "2026-07-28 · completes an interrupted subscriptions/listen with its result",
    () =>
      scoped(Effect.gen(function*() {
        const { console: { url: at }, url } = yield* kit.open()
        const signal = yield* kit.signal
        yield* Effect.promise(async () => {
          const listening = kit.ask(url, signal, "subscriptions/listen", { notifications: { toolsListChanged: true } })
          await kit.until(async () => (await rowsOf(at)).some(({ kind }) => kind === "subscription"))
          const { id } = (await rowsOf(at)).find(({ kind }) => kind === "subscription")!
          assert.deepEqual(await interrupt(at, id), { outcome: "Interrupted" })
          assert.include(await (await listening).text(), "\"result\"")
        })
      }))
  )

  live(
    "refuses an id of another start, an unknown one, and one that cannot be interrupted",
    () =>
      scoped(Effect.gen(function*() {
        const { console: { url: at } } = yield* kit.open()
        yield* Effect.promise(async () => {
          assert.deepEqual(await interrupt(at, "server:r1", { instance: "another" }), { outcome: "Restarted" })
          for (const id of ["server:r999999", "server:server", "nothing:1", "r1"]) {
            assert.deepEqual(await interrupt(at, id), { outcome: "NotFound" })
          }
        })
      }))
  )
})

describe("actions", () => {
  /** A shelf that can be filled once, whose other row offers nothing. */
  const shelf = () => {
    const done: Array<string> = []
    const source: ConsoleSource.Source = {
      name: "shelf",
      read: () =>
        Effect.succeed({
          nodes: [
            {
              id: "a:1",
              kind: "queue",
              label: "teas",
              state: "idle",
              summary: "2\u0007 left",
              actions: [
                { name: "fill", label: "Fill\u001b it".repeat(20), confirm: "It gets full. ".repeat(100) },
                { name: "", label: "nameless" },
                { name: "x".repeat(101), label: "too long" },
                ...Array.from({ length: 20 }, (_, at) => ({ name: `other ${at}`, label: "Other" }))
              ]
            },
            { id: "b", kind: "queue", label: "cups", state: "idle" }
          ]
        }),
      act: (id, action) => {
        if (action === "break") return Effect.fail(new StoreError({ message: "broken" }))
        if (id !== "a:1" || action !== "fill") return Effect.undefined
        if (done.length > 0) return Effect.succeed({ isDone: false, message: "It is full" })
        return Effect.sync(() => ({ isDone: done.push(id) > 0, message: `Filled\u0007${"!".repeat(999)}` }))
      }
    }
    return { done, layer: ConsoleSource.layer(source) }
  }

  live(
    "are shown with bounded texts, and run with the name that the source has given them",
    () =>
      scoped(Effect.gen(function*() {
        const { done, layer } = shelf()
        const logged: Array<unknown> = []
        const logger = Logger.layer([Logger.make(({ message }) => void logged.push(message))])
        const { console: { url: at } } = yield* Effect.provide(
          kit.open({ protect: Console.password("tea") }, layer),
          logger
        )
        const headers = { authorization: `Basic ${btoa("ada:tea")}`, "content-type": "application/json" }
        yield* Effect.promise(async () => {
          const { instance, rows } = await readTree(at, headers)
          const [teas, cups] = rows.filter(({ id }) => id.startsWith("shelf:"))
          assert.strictEqual(teas!.summary, "2\\u{7} left")
          assert.strictEqual(teas!.actions!.length, 10)
          const [fill] = teas!.actions!
          assert.strictEqual(fill!.name, "fill")
          assert.isTrue(fill!.label.startsWith("Fill\\u{1b} it"))
          assert.isBelow(fill!.label.length, 110)
          assert.strictEqual(fill!.confirm!.length, 601)
          assert.strictEqual(teas!.actions![1]!.name, "other 0")
          assert.isUndefined(cups!.actions)
          const body = JSON.stringify({ instance, id: teas!.id, action: "fill" })
          const send = () => fetch(new URL("act", at), { method: "POST", headers, body })
          const answer = await (await send()).json() as Acted
          assert.strictEqual(answer.outcome, "Done")
          assert.isTrue(answer.message!.startsWith("Filled\\u{7}!!"))
          assert.isBelow(answer.message!.length, 210)
          assert.deepEqual(await (await send()).json(), { outcome: "NotFound", message: "It is full" })
        })
        assert.deepEqual(done, ["a:1"])
        expect(logged.flat()).toEqual(["console: ran the action fill of shelf:a:1, asked by ada"])
      }))
  )

  live(
    "are refused for another start, unknown rows and names, and rows that do not offer them",
    () =>
      scoped(Effect.gen(function*() {
        const { done, layer } = shelf()
        const { console: { url: at } } = yield* kit.open({}, layer)
        yield* Effect.promise(async () => {
          assert.deepEqual(await act(at, "shelf:a:1", "fill", { instance: "another" }), { outcome: "Restarted" })
          const refused = [
            ["shelf:a:1", "empty"],
            ["shelf:a:1", ""],
            ["shelf:b", "fill"],
            ["shelf:c", "fill"],
            ["server:server", "fill"],
            ["nothing:1", "fill"],
            ["fill", "fill"]
          ] as const
          for (const [id, action] of refused) assert.deepEqual(await act(at, id, action), { outcome: "NotFound" })
        })
        assert.deepEqual(done, [])
      }))
  )

  live(
    "are refused for other origins, forms, other methods, and bodies that are not complete",
    () =>
      scoped(Effect.gen(function*() {
        const { done, layer } = shelf()
        const { console: { port, url: at } } = yield* kit.open({}, layer)
        yield* Effect.promise(async () => {
          const { instance } = await readTree(at)
          const own = { host: `127.0.0.1:${port}` }
          const json = { ...own, "content-type": "application/json" }
          const body = JSON.stringify({ instance, id: "shelf:a:1", action: "fill" })
          const post = (headers: Record<string, string>, text = body) => status(at, "/act", headers, "POST", text)
          assert.strictEqual(await post({ ...json, host: "evil.example" }), 403)
          assert.strictEqual(await post({ ...json, origin: "http://evil.example" }), 403)
          assert.strictEqual(await post({ ...json, origin: "http://127.0.0.1:1" }), 403)
          assert.strictEqual(await post({ ...json, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }), 403)
          for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
            assert.strictEqual(await post({ ...own, "content-type": type }), 415)
          }
          assert.strictEqual(await status(at, "/act", own), 405)
          const broken = [
            "{",
            "[]",
            "{}",
            JSON.stringify({ instance, id: "shelf:a:1" }),
            `{"action":1,${body.slice(1, -22)}}`
          ]
          for (const text of broken) assert.strictEqual(await post(json, text), 400, text)
          assert.strictEqual(await post(json, " ".repeat(5_000)), 413)
          assert.deepEqual(done, [])
          assert.strictEqual(await post(json, JSON.stringify({ instance, id: "shelf:b", action: "break" })), 500)
          assert.strictEqual(await post(json), 200)
        })
        assert.deepEqual(done, ["a:1"])
      }))
  )
})

describe("guards", () => {
  live("refuses other hosts, pages of other origins, forms, and wrong methods", () =>
    scoped(Effect.gen(function*() {
      const { console: { port, url: at } } = yield* kit.open()
      const own = { host: `127.0.0.1:${port}` }
      const body = JSON.stringify({ instance: "x", id: "y" })
      const json = { ...own, "content-type": "application/json" }
      yield* Effect.promise(async () => {
        for (const path of ["/", "/tree", "/events"]) {
          assert.strictEqual(await status(at, path, own), 200)
          assert.strictEqual(await status(at, path, { host: "evil.example" }), 403)
          assert.strictEqual(await status(at, path, { ...own, origin: "http://evil.example" }), 403)
          // Another server of this machine.
          assert.strictEqual(await status(at, path, { ...own, origin: "http://127.0.0.1:1" }), 403)
          assert.strictEqual(await status(at, path, { ...own, origin: "null" }), 403)
          assert.strictEqual(
            await status(at, path, { ...own, "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }),
            403
          )
          assert.strictEqual(await status(at, path, { ...own, origin: `http://127.0.0.1:${port}` }), 200)
        }
        const navigation = { ...own, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }
        assert.strictEqual(await status(at, "/", navigation), 200)
        // Frames of another page would occupy the viewers.
        assert.strictEqual(await status(at, "/events", navigation), 403)
        assert.strictEqual(await status(at, "/interrupt", json, "POST", body), 200)
        assert.strictEqual(await status(at, "/interrupt", { ...json, ...navigation }, "POST", body), 403)
        assert.strictEqual(await status(at, "/interrupt", { ...json, origin: "http://localhost:9" }, "POST", body), 403)
        for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"]) {
          assert.strictEqual(await status(at, "/interrupt", { ...own, "content-type": type }, "POST", body), 415)
        }
        assert.strictEqual(await status(at, "/interrupt", own), 405)
        assert.strictEqual(await status(at, "/tree", json, "POST", body), 405)
        assert.strictEqual(await status(at, "/tree", own, "OPTIONS"), 405)
        assert.strictEqual(await status(at, "/elsewhere", own), 404)
        assert.strictEqual(await status(at, "/interrupt", json, "POST", "{"), 400)
        assert.strictEqual(await status(at, "/interrupt", json, "POST", "{\"id\":1}"), 400)
        assert.strictEqual(await status(at, "/interrupt", json, "POST", " ".repeat(5_000)), 413)
      })
    })))

  live("allows the pages of allowedOrigins", () =>
    scoped(Effect.gen(function*() {
      const { console: { url: at } } = yield* kit.open({ allowedOrigins: ["https://ops.example.com"] })
      const headers = { host: new URL(at).host, "sec-fetch-site": "cross-site" }
      yield* Effect.promise(async () => {
        assert.strictEqual(await status(at, "/tree", { ...headers, origin: "https://ops.example.com" }), 200)
        assert.strictEqual(await status(at, "/tree", { ...headers, origin: "https://other.example.com" }), 403)
      })
    })))

  live("does not start on other addresses than loopback without protect", () =>
    scoped(Effect.gen(function*() {
      for (const host of ["0.0.0.0", "::", "192.0.2.1", "example.com", "127.0.0.1.example.com"]) {
        const error = yield* Effect.flip(kit.open({ host }))
        expect(error).toMatchObject({ _tag: "ConsoleError", reason: { _tag: "Unprotected", host } })
      }
      const { console: { port } } = yield* kit.open({ host: "0.0.0.0", protect: Console.password("open sesame") })
      assert.strictEqual(yield* Effect.promise(() => status(`http://127.0.0.1:${port}/`, "/", {})), 401)
    })))

  live("asks for a password, and compares all of it", () =>
    scoped(Effect.gen(function*() {
      const { console: { url: at } } = yield* kit.open({ protect: Console.password("tea: höt") })
      const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` })
      yield* Effect.promise(async () => {
        const refused = await fetch(at)
        assert.strictEqual(refused.status, 401)
        assert.include(refused.headers.get("www-authenticate"), "Basic")
        for (const path of ["", "tree", "events", "more?parent=x"]) {
          assert.strictEqual((await fetch(new URL(path, at))).status, 401)
        }
        for (const wrong of ["ada:tea", "ada:", "ada:tea: höt ", "tea: höt:", ""]) {
          assert.strictEqual((await fetch(at, { headers: basic(wrong) })).status, 401, wrong)
        }
        assert.strictEqual((await fetch(at, { headers: basic("ada:tea: höt") })).status, 200)
        assert.strictEqual((await fetch(at, { headers: { authorization: "Basic %%%" } })).status, 401)
      })
      assert.throws(() => Console.password(""), "must not be empty")
    })))

  live(
    "refuses all passwords of an address after maxFailures wrong ones, and counts no request without one",
    () =>
      scoped(Effect.gen(function*() {
        const protect = Console.password("tea", { maxFailures: 3 })
        const { console: { url: at } } = yield* kit.open({ protect })
        const ask = (password?: string) =>
          Effect.promise(() =>
            fetch(at, {
              headers: password === undefined ? {} : { authorization: `Basic ${btoa(`ada:${password}`)}` }
            })
          )
        for (let count = 0; count < 6; count++) assert.strictEqual((yield* ask()).status, 401)
        assert.strictEqual((yield* ask("tea")).status, 200)
        // A burst: three are compared at a time, and two more may have begun when the third has failed.
        const guesses = Array.from({ length: 20 }, (_, index) => `guess ${index}`)
        const answers = yield* Effect.forEach(guesses, ask, { concurrency: "unbounded" })
        const compared = answers.filter(({ status }) => status === 401).length
        assert.isTrue(compared >= 3 && compared <= 5, String(compared))
        assert.strictEqual(answers.filter(({ status }) => status === 429).length, 20 - compared)
        const refused = yield* ask("tea")
        assert.strictEqual(refused.status, 429)
        assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/)
      }))
  )

  live("accepts the tokens of Protect.make", () =>
    scoped(Effect.gen(function*() {
      const issuer = "https://login.example"
      const resource = "https://ops.example/console"
      const verify = TokenVerifier.make({
        issuer,
        audiences: [],
        verify: (token) =>
          Effect.succeed({
            subject: token,
            audiences: [token === "ada" ? resource : "https://else.example"],
            scopes: [],
            expiresAt: undefined
          })
      })
      const { console: { url: at } } = yield* kit.open({ protect: Protect.make({ resource, verify }) })
      yield* Effect.promise(async () => {
        assert.strictEqual(await status(at, "/tree", {}), 401)
        assert.strictEqual(await status(at, "/tree", { authorization: "Bearer bob" }), 401)
        assert.strictEqual(await status(at, "/tree", { authorization: "Bearer ada" }), 200)
      })
    })))

  live(
    "refuses with the status of protect, and a viewer without a principal with 401",
    () =>
      scoped(Effect.gen(function*() {
        const protect: Http.FindPrincipal = (request) => {
          const user = request.header("x-user")
          if (user === "nobody") throw new Http.Refusal({ status: 403, message: "not you" })
          if (user === "defect") return Effect.die("broken")
          if (user === "rejects") return Promise.reject(new Http.Refusal({ status: 403, message: "not you" }))
          if (user === "grace") return Promise.resolve({ id: user })
          if (user === "stranger") return Promise.resolve(undefined)
          if (user === "no id") return Promise.resolve({ name: user }) as Promise<never>
          return user === undefined ? undefined : { id: user }
        }
        const { console: { url: at } } = yield* kit.open({ protect: { identify: protect } })
        yield* Effect.promise(async () => {
          assert.strictEqual(await status(at, "/", {}), 401)
          assert.strictEqual(await status(at, "/", { "x-user": "nobody" }), 403)
          assert.strictEqual(await status(at, "/", { "x-user": "defect" }), 500)
          assert.strictEqual(await status(at, "/", { "x-user": "ada" }), 200)
          assert.strictEqual(await status(at, "/", { "x-user": "rejects" }), 403)
          assert.strictEqual(await status(at, "/", { "x-user": "grace" }), 200)
          assert.strictEqual(await status(at, "/", { "x-user": "stranger" }), 401)
          assert.strictEqual(await status(at, "/", { "x-user": "no id" }), 500)
        })
      }))
  )
})

describe("the page", () => {
  it("is bundled from its sources: npm run console-page writes it", async () => {
    assert.strictEqual(readFileSync(target, "utf8"), await pageModule())
  })

  live("loads nothing, runs its own script only, and cannot be framed", () =>
    scoped(Effect.gen(function*() {
      const { console: { url: at } } = yield* kit.open()
      const response = yield* Effect.promise(() => fetch(at))
      const policy = response.headers.get("content-security-policy")!
      assert.include(policy, "default-src 'none'")
      assert.include(policy, "frame-ancestors 'none'")
      assert.notInclude(policy, "unsafe-inline")
      assert.strictEqual(response.headers.get("cache-control"), "no-store")
      const html = yield* Effect.promise(() => response.text())
      assert.isNull(/<(script|link|img)[^>]*\b(src|href)="(?!data:,")/.exec(html))
    })))

  live("is served on a path of an endpoint, which stays as it was", () =>
    scoped(Effect.gen(function*() {
      const pages = Console.pages({ path: "/console/", protect: Console.password("tea") })
      const context = yield* Layer.build(NodeHttp.layer({ port: 0, pages }).pipe(Layer.provide(kit.tea)))
      const { url } = Context.get(context, NodeHttp.Server)
      const authorization = `Basic ${btoa("ada:tea")}`
      yield* Effect.promise(async () => {
        assert.strictEqual(await status(url, "/console/", {}), 401)
        assert.strictEqual(await status(url, "/console", { authorization }), 308)
        assert.strictEqual(await status(url, "/console/", { authorization }), 200)
        assert.strictEqual(await status(url, "/console/", { authorization, host: "evil.example" }), 403)
        assert.strictEqual(await status(url, "/console/", { authorization, origin: "http://127.0.0.1:1" }), 403)
        assert.strictEqual(await status(url, "/console/else", { authorization }), 404)
        assert.strictEqual(await status(url, "/console2/", { authorization }), 404)
        const tree = await readTree(new URL("/console/", url).href, { authorization })
        assert.strictEqual(tree.rows[0]!.label, "tea house 1.2.0")
        const signal = AbortSignal.timeout(10_000)
        assert.strictEqual((await (await kit.visit(url, signal)).call("ping")).status, 200)
      })
    })))
})

describe("events", () => {
  live(
    "sends all rows, then the differences, with at most maxRowsPerMessage rows each",
    () =>
      scoped(Effect.gen(function*() {
        const { console: { url: at }, server, url } = yield* kit.open({}, undefined, {
          interval: 20,
          maxRowsPerMessage: 3
        })
        yield* kit.crowd(server, 10)
        const signal = yield* kit.signal
        yield* Effect.promise(async () => {
          const stream = events(at, signal)
          const hello = (await stream.next()).value!
          expect(hello).toMatchObject({ event: "hello", data: { version: 1, interval: 20, showPayloads: false } })
          const seen = new Map<string, Row>()
          const change = async (): Promise<ReadonlyArray<Rows>> => {
            const all: Array<Rows> = []
            do {
              const rows = (await stream.next()).value!.data as Rows
              assert.isAtMost((rows.set?.length ?? 0) + (rows.remove?.length ?? 0), 3)
              if (rows.reset === true) seen.clear()
              for (const id of rows.remove ?? []) assert.isTrue(seen.delete(id))
              for (const row of rows.set ?? []) seen.set(row.id, row)
              all.push(rows)
            } while (all.at(-1)!.continues === true)
            return all
          }
          const first = await change()
          assert.isTrue(first[0]!.reset)
          assert.isTrue(first.slice(1).every(({ reset }) => reset === undefined))
          // The server, ten sessions, and one request.
          assert.strictEqual(seen.size, 12)
          expect(Object.keys((await change())[0]!)).toEqual(["at"])
          await kit.visit(url, signal, { name: "Late" })
          while (![...seen.values()].some(({ label }) => label === "Late 3.1")) await change()
          assert.strictEqual(seen.size, 13)
          const late = [...seen.values()].find(({ label }) => label === "Late 3.1")!
          await interrupt(at, late.id)
          while (seen.has(late.id)) await change()
          assert.strictEqual(seen.size, 12)
        })
      }))
  )

  live(
    "refuses a viewer beyond the bound, and reads nothing after the last one has left",
    () =>
      scoped(Effect.gen(function*() {
        let reads = 0
        const counting = ConsoleSource.layer({
          name: "counting",
          read: () => Effect.sync(() => ({ nodes: [{ id: "1", kind: "group", label: `${++reads}`, state: "idle" }] }))
        })
        const { console: { url: at, viewers } } = yield* kit.open({}, counting, { interval: 10, maxViewers: 2 })
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
        assert.strictEqual(reads, 0)
        const leaving = new AbortController()
        yield* Effect.promise(async () => {
          const streams = [events(at, leaving.signal), events(at, leaving.signal)]
          for (const stream of streams) await stream.next()
          const refused = await fetch(new URL("events", at))
          assert.strictEqual(refused.status, 503)
          assert.include(await refused.text(), "Too many viewers are connected: 2")
          await kit.until(() => reads > 3)
        })
        leaving.abort()
        yield* Effect.promise(() => kit.until(async () => await Effect.runPromise(viewers) === 0))
        const before = reads
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 60)))
        assert.isAtMost(reads - before, 1)
      }))
  )

  live("ends the streams of viewers when the console closes", () =>
    Effect.gen(function*() {
      const { promise, resolve } = Promise.withResolvers<void>()
      yield* scoped(Effect.gen(function*() {
        const { console: { url: at } } = yield* kit.open()
        const stream = events(at, AbortSignal.timeout(20_000))
        yield* Effect.promise(() => stream.next())
        void (async () => {
          for await (const _ of stream) continue
        })().catch(() => {}).then(resolve)
      }))
      yield* Effect.promise(() => promise)
      assert.isTrue(true)
    }))
})

describe("sources", () => {
  const many = (total: number): ConsoleSource.Source => ({
    name: "jobs",
    read: ({ limit, showPayloads }) =>
      Effect.succeed({
        nodes: [
          { id: "all", kind: "group", label: "Jobs", state: "running", more: { total, after: String(limit) } },
          ...Array.from(
            { length: limit },
            (_, at) => ({
              id: `${at}`,
              parent: "all",
              kind: "task",
              label: `${showPayloads}`,
              state: "running",
              canInterrupt: true
            })
          ),
          { id: "orphan", parent: "nowhere", kind: "task", label: "orphan", state: "running" }
        ]
      }),
    more: ({ after, limit, parent }) =>
      Effect.succeed({
        nodes: Array.from(
          { length: limit },
          (_, at) => ({ id: `${Number(after) + at}`, parent, kind: "task", label: "more", state: "done" })
        ),
        after: String(Number(after) + limit)
      }),
    interrupt: (id) => Effect.succeed(id === "1")
  })

  live(
    "shows the first maxChildren of 100,000 tasks, pages through the others, and interrupts one",
    () =>
      scoped(Effect.gen(function*() {
        const { console: { url: at } } = yield* kit.open({}, ConsoleSource.layer(many(100_000)), { maxChildren: 5 })
        yield* Effect.promise(async () => {
          const rows = (await rowsOf(at)).filter(({ id }) => id.startsWith("jobs:"))
          assert.deepEqual(rows.map(({ id }) => id), ["all", "0", "1", "2", "3", "4"].map((id) => `jobs:${id}`))
          assert.deepEqual(rows[0]!.more, { total: 100_000, after: "5" })
          assert.strictEqual(rows[1]!.label, "false")
          const more = await (await fetch(new URL("more?parent=jobs:all&after=5", at))).json() as {
            rows: Array<Row>
            after: string
          }
          assert.deepEqual([more.rows.map(({ id }) => id).join(), more.after], [
            "jobs:5,jobs:6,jobs:7,jobs:8,jobs:9",
            "10"
          ])
          assert.strictEqual((await fetch(new URL("more?parent=server:server", at))).status, 404)
          assert.strictEqual((await interrupt(at, "jobs:1")).outcome, "Interrupted")
          assert.strictEqual((await interrupt(at, "jobs:2")).outcome, "NotFound")
        })
      }))
  )

  live(
    "counts the sessions beyond maxRows, and shows a source that fails or hangs as a row",
    () =>
      scoped(Effect.gen(function*() {
        const failing = Layer.mergeAll(
          ConsoleSource.layer({
            name: "broken",
            read: () => Effect.fail(new StoreError({ message: "the store is closed" }))
          }),
          ConsoleSource.layer({ name: "slow", read: () => Effect.never })
        )
        const { console: { url: at }, server } = yield* kit.open({}, failing, { maxRows: 150, readTimeout: 50 })
        yield* kit.crowd(server, 60)
        const rows = yield* Effect.promise(() => rowsOf(at))
        const own = rows.filter(({ id }) => id.startsWith("server:"))
        assert.isAtMost(own.length, 50)
        assert.strictEqual(own[0]!.more?.total, 60)
        expect(rows.filter(({ kind }) => kind === "problem")).toMatchObject([
          { label: "broken cannot be shown", waitsFor: "the store is closed" },
          { label: "slow cannot be shown", waitsFor: "it did not answer within 50 ms" }
        ])
      }))
  )

  it.effect("dies for two sources of one name", () =>
    Effect.gen(function*() {
      const { add } = yield* ConsoleSource.ConsoleSources
      yield* add(many(1))
      for (const name of ["jobs", "server", "a:b"]) {
        const exit = yield* Effect.exit(add({ ...many(1), name }))
        assert.strictEqual(exit._tag, "Failure")
      }
    }).pipe(scoped, Effect.provide(ConsoleSource.ConsoleSources.layer)))
})

describe("the arguments of a request", () => {
  it("are the JSON of the params without their metadata", () => {
    const params = { name: "a\"b", arguments: { list: [1, null, true, "\u0007", {}], "": [] } }
    assert.strictEqual(clipJson({ ...params, _meta: { a: 1 } } as never, 1_000), JSON.stringify(params))
  })

  it("are read as far as they are shown, at any width and depth", () => {
    const wide = counted({ list: Array.from({ length: 50_000 }, () => "x"), long: "y".repeat(1_000_000) })
    assert.strictEqual(clipJson(wide.value as never, 300).length, 301)
    // The names of a list are read at once.
    assert.isBelow(wide.reads(), 60_000)
    const deep = JSON.parse(`{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`)
    assert.strictEqual(clipJson(deep, 300), `{"a":${"[".repeat(295)}…`)
  })
})
