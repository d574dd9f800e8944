/**
 * The servers of `examples/comparison`, in each of their forms: they do the same. The Python programs run where the
 * variable `FASTMCP_PYTHON` names a Python with FastMCP 4.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Credentials from "@skein/client/Credentials"
import * as Elicitation from "@skein/client/Elicitation"
import * as Http from "@skein/client/Http"
import * as Roots from "@skein/client/Roots"
import * as Stdio from "@skein/client/Stdio"
import type * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as jose from "jose"
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { linesOf, programs, servers } from "./comparison/lines.ts"
import * as kit from "./testKit.ts"

const python = process.env["FASTMCP_PYTHON"]

type Form = keyof typeof programs
type Server = (typeof servers)[number]

const forms: ReadonlyArray<Form> = ["skein", "sdk", ...(python === undefined ? [] : ["fastmcp" as const])]

// FastMCP 4 asks for roots in sessions only.
const revisionsOf = (form: Form): ReadonlyArray<Revision.Revision> =>
  form === "fastmcp" ? ["2025-11-25"] : ["2025-11-25", "2026-07-28"]

const cases = forms.flatMap((form) => revisionsOf(form).map((revision) => ({ form, revision })))

const command = (server: Server, form: Form) =>
  form === "fastmcp"
    ? { command: python!, args: [kit.path(`comparison/${server}/with_fastmcp.py`)] }
    : kit.program(`comparison/${server}/${programs[form]}`)

const folder = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "skein-comparison-")))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const listening = (listener: (request: IncomingMessage, response: ServerResponse) => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer(listener).listen(0, "127.0.0.1", () => resolve(server))
        })
      ),
      (server) =>
        Effect.sync(() => server.closeAllConnections()).pipe(Effect.andThen(Effect.sync(() => server.close())))
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  )

const textOf = ({ content }: { readonly content: ReadonlyArray<{ readonly type: string; readonly text?: unknown }> }) =>
  content.map((block) => block.type === "text" ? String(block.text) : `<${block.type}>`).join("\n")

/** An issuer of tokens: its metadata, its keys, and a function that signs tokens. */
const issuer = Effect.gen(function*() {
  const { privateKey, publicKey } = yield* Effect.promise(() => jose.generateKeyPair("RS256"))
  const jwk = { ...yield* Effect.promise(() => jose.exportJWK(publicKey)), kid: "1", alg: "RS256", use: "sig" }
  const url: string = yield* listening((request, response) => {
    const metadata = {
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      jwks_uri: `${url}/jwks`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"]
    }
    response.setHeader("content-type", "application/json")
    response.end(JSON.stringify(request.url?.endsWith("/jwks") ? { keys: [jwk] } : metadata))
  })
  const token = (audience: string, subject: string, scope: string) =>
    Effect.promise(() =>
      new jose.SignJWT({ scope, client_id: "test" })
        .setProtectedHeader({ alg: "RS256", kid: "1", typ: "at+jwt" })
        .setIssuer(url).setAudience(audience).setSubject(subject).setIssuedAt().setExpirationTime("10 minutes")
        .setJti(crypto.randomUUID()).sign(privateKey)
    )
  return { url, token }
})

it("has the counted lines in the guide, with fewer for Skein than for SDK v2", async () => {
  const guide = readFileSync(kit.path("../docs/comparison.md"), "utf8")
  for (const server of servers) {
    const row = guide.split("\n").find((line) => line.includes(`comparison/${server})`)) ?? ""
    const numbers = row.split("|").slice(2, 5).map(Number)
    const counted = await Promise.all((["skein", "fastmcp", "sdk"] as const).map((form) => linesOf(server, form)))
    assert.deepStrictEqual(numbers, counted)
    assert.isBelow(counted[0]!, counted[2]!)
  }
})

describe.each(cases)("issues, $form, $revision", ({ form, revision }) => {
  it.live("keeps issues for signed-in users", () =>
    Effect.gen(function*() {
      const { token, url: issuerUrl } = yield* issuer
      const port = yield* kit.freePort
      const url = `http://127.0.0.1:${port}/mcp`
      yield* kit.start(command("issues", form), { PORT: String(port), ISSUER: issuerUrl })
      const request = Effect.promise(() =>
        fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" })
      )
      const refused = yield* request.pipe(
        Effect.sandbox,
        Effect.retry(Schedule.spaced("100 millis"))
      )
      assert.strictEqual(refused.status, 401)
      assert.include(refused.headers.get("www-authenticate"), "resource_metadata")
      const connect = (subject: string, scope: string) =>
        Effect.flatMap(token(url, subject, scope), (text) =>
          Client.make(Http.transport({ url, credentials: Credentials.bearer(Redacted.make(text)) }), {
            revisions: [revision]
          }))

      const ada = yield* connect("ada", "issues:read issues:write")
      const created = yield* ada.callTool("create_issue", { title: "No tea", labels: ["kitchen"] })
      const first = {
        id: 1,
        title: "No tea",
        body: "",
        labels: ["kitchen"],
        status: "open",
        author: "ada",
        comments: []
      }
      assert.deepStrictEqual(created.structuredContent, first)
      const empty = yield* Effect.exit(ada.callTool("create_issue", { title: "" }))
      assert.isTrue(empty._tag === "Failure" || empty.value.isError)
      yield* ada.callTool("create_issue", { title: "No milk" })

      const grace = yield* connect("grace", "issues:read issues:write")
      yield* grace.callTool("add_comment", { id: 1, text: "Ordered" })
      const comments = [{ author: "grace", text: "Ordered" }]
      yield* grace.callTool("close_issue", { id: 1 })
      const list = (input: object) =>
        Effect.map(
          ada.callTool("list_issues", input as {}),
          ({ structuredContent }) =>
            (structuredContent as { readonly issues: ReadonlyArray<typeof first> }).issues
        )
      assert.deepStrictEqual(
        (yield* list({})).map(({ id }) =>
          id
        ),
        [2, 1]
      )
      assert.deepStrictEqual(yield* list({ status: "closed" }), [{ ...first, status: "closed", comments } as never])
      assert.deepStrictEqual(yield* list({ label: "garden" }), [])
      const unknown = yield* ada.callTool("close_issue", { id: 9 })
      assert.isTrue(unknown.isError)
      assert.include(textOf(unknown), "No issue 9: call list_issues")

      const { contents } = yield* ada.readResource("issues://1")
      assert.include(JSON.stringify(contents), "Ordered")
      assert.strictEqual((yield* Effect.exit(ada.readResource("issues://9")))._tag, "Failure")
      const { messages } = yield* ada.getPrompt("triage", { id: "2" })
      assert.include(JSON.stringify(messages), "No milk")

      // Reads, but does not write.
      const guest = yield* connect("guest", "issues:read")
      assert.strictEqual((yield* guest.callTool("list_issues")).isError ?? false, false)
      const denied = yield* Effect.exit(guest.callTool("create_issue", { title: "Mine" }))
      assert.isTrue(denied._tag === "Failure" || denied.value.isError)
      assert.lengthOf(yield* list({}), 2)
    }), 60_000)
})

describe.each(cases)("files, $form, $revision", ({ form, revision }) => {
  it.live("reads and writes files of shared folders only", () =>
    Effect.gen(function*() {
      const parent = yield* folder
      const shared = join(parent, "shared")
      mkdirSync(join(shared, "notes"), { recursive: true })
      writeFileSync(join(shared, "notes/tea.md"), "# Tea\n\nBuy sencha.\n")
      writeFileSync(join(parent, "secret.md"), "sencha is secret")
      symlinkSync(join(parent, "secret.md"), join(shared, "link.md"))
      const roots = Roots.layer([{ uri: pathToFileURL(shared).href }])
      const client = yield* Client.make(Stdio.transport(command("files", form)), { revisions: [revision] }).pipe(
        Effect.provide(roots)
      )
      const call = (name: string, input: {}) => client.callTool(name, input)
      assert.deepStrictEqual(textOf(yield* call("list_files", {})).split("\n").sort(), ["link.md", "notes/"])
      assert.strictEqual(textOf(yield* call("read_file", { path: "notes/tea.md" })), "# Tea\n\nBuy sencha.\n")
      assert.include(textOf(yield* call("search", { text: "sencha" })), "notes/tea.md:3: Buy sencha.")
      assert.include(textOf(yield* call("write_file", { path: "new.md", text: "12345" })), "5 characters")
      assert.strictEqual(readFileSync(join(shared, "new.md"), "utf8"), "12345")
      for (const path of ["../secret.md", "link.md", join(parent, "secret.md"), "notes/../../secret.md"]) {
        const refused = yield* call("read_file", { path })
        assert.isTrue(refused.isError, path)
        assert.include(textOf(refused), "is not in a shared folder")
        assert.isTrue((yield* call("write_file", { path, text: "" })).isError, path)
      }
      assert.strictEqual(readFileSync(join(parent, "secret.md"), "utf8"), "sencha is secret")
      assert.isTrue((yield* call("read_file", { path: "missing.md" })).isError)
    }), 60_000)
})

describe.each(cases)("api, $form, $revision", ({ form, revision }) => {
  it.live("calls the operations of the API", () =>
    Effect.gen(function*() {
      const requests: Array<string> = []
      const api = yield* listening((request, response) => {
        let body = ""
        request.setEncoding("utf8").on("data", (text: string) => void (body += text)).on("end", () => {
          requests.push(`${request.method} ${request.url}${body && ` ${JSON.stringify(JSON.parse(body))}`}`)
          response.setHeader("content-type", "application/json")
          if (request.url === "/v1/pets/9") response.writeHead(404)
          response.end(JSON.stringify(request.url === "/v1/pets/9" ? { message: "No such pet" } : { ok: true }))
        })
      })
      const client = yield* Client.make(
        Stdio.transport({ ...command("api", form), env: { PETS_URL: `${api}/v1` } }),
        { revisions: [revision] }
      )
      const names = (yield* client.listTools()).map(({ name }) => name)
      assert.deepStrictEqual([...names].sort(), ["addPet", "getPet", "listPets", "removePet"])
      yield* client.callTool("listPets", { kind: "cat", limit: 3 })
      yield* client.callTool("addPet", { name: "Tom", kind: "cat", owner: { name: "Ada" } })
      yield* client.callTool("removePet", { id: 7 })
      const missing = yield* client.callTool("getPet", { id: 9 })
      assert.isTrue(missing.isError)
      assert.include(textOf(missing), "404")
      assert.deepStrictEqual(requests, [
        "GET /v1/pets?kind=cat&limit=3",
        "POST /v1/pets {\"name\":\"Tom\",\"kind\":\"cat\",\"owner\":{\"name\":\"Ada\"}}",
        "DELETE /v1/pets/7",
        "GET /v1/pets/9"
      ])
      // FastMCP leaves the check of arguments to the API.
      if (form === "fastmcp") return
      const invalid = yield* Effect.exit(client.callTool("addPet", { name: "Tom", kind: "tiger" }))
      assert.isTrue(invalid._tag === "Failure" || invalid.value.isError)
      assert.lengthOf(requests, 4)
    }), 60_000)
})

describe.each(cases)("media, $form, $revision", ({ form, revision }) => {
  it.live("asks how a melody should sound, reports each note, and returns the sound", () =>
    Effect.gen(function*() {
      const forms: Array<string> = []
      const asked = Elicitation.layer({
        form: ({ message, requestedSchema }) =>
          Effect.sync(() => {
            forms.push(`${message} ${Object.keys(requestedSchema.properties).join()}`)
            return forms.length === 1 ? Elicitation.accept({ instrument: "square", tempo: 240 }) : Elicitation.decline
          })
      })
      const client = yield* Client.make(Stdio.transport(command("media", form)), { revisions: [revision] }).pipe(
        Effect.provide(asked)
      )
      const progress: Array<string> = []
      const notes = ["C4", "F#4", "A4"]
      const played = yield* client.callTool("play_melody", { notes }, {
        onProgress: ({ message, progress: at, total }) => void progress.push(`${at}/${total} ${message}`)
      })
      assert.strictEqual(textOf(played), "3 notes at 240 beats a minute\n<audio>")
      const sound = played.content[1] as { readonly data: string; readonly mimeType: string }
      assert.strictEqual(sound.mimeType, "audio/wav")
      const bytes = Buffer.from(sound.data, "base64")
      assert.strictEqual(bytes.toString("latin1", 0, 4), "RIFF")
      assert.strictEqual(bytes.length, 44 + 2 * 3 * 4_000)
      assert.deepStrictEqual(progress, ["1/3 C4", "2/3 F#4", "3/3 A4"])
      const declined = yield* client.callTool("play_melody", { notes })
      assert.isTrue(declined.isError)
      assert.deepStrictEqual(forms, Array(2).fill("How should it sound? instrument,tempo"))
      const invalid = yield* Effect.exit(client.callTool("play_melody", { notes: ["H9"] }))
      assert.isTrue(invalid._tag === "Failure" || invalid.value.isError)
    }), 60_000)
})

describe.each(cases)("research, $form, $revision", ({ form, revision }) => {
  it.live("searches, asks, reads in spite of a busy library, and reports", () =>
    Effect.gen(function*() {
      const cwd = yield* folder
      const asked = Elicitation.layer({
        form: () => Effect.succeed(Elicitation.accept({ [form === "fastmcp" ? "value" : "ids"]: ["t1", "t2"] }))
      })
      const transport = Stdio.transport({ ...command("research", form), env: { DATABASE: join(cwd, "research.db") } })
      const client = yield* Client.make(transport, { revisions: [revision] }).pipe(Effect.provide(asked))
      const progress: Array<string> = []
      const report = yield* client.callTool("research", { topic: "tea" }, {
        onProgress: ({ message }) => void progress.push(String(message))
      })
      assert.strictEqual(
        textOf(report),
        "# tea\n\n## Green tea\n\nGreen tea is heated soon after the harvest, so that it stays green.\n\n" +
          "## Black tea\n\nBlack tea is oxidized before it is dried."
      )
      // In 2026-07-28 the call is a task, and "progress notifications are not supported on tasks" (SEP-2663).
      const isTask = form === "skein" && revision === "2026-07-28"
      assert.deepStrictEqual([...progress].sort(), isTask ? [] : ["Black tea", "Green tea"])
      const unknown = yield* client.callTool("research", { topic: "wine" })
      assert.isTrue(unknown.isError)
      assert.include(textOf(unknown), "No source knows \"wine\"")
    }), 60_000)
})
