/**
 * The command line of the MCP Inspector with Skein's server: over HTTP with and without sessions, over HTTP+SSE, and
 * over stdio.
 *
 * The Inspector's postinstall script is not run. It only downloads files that a checkout of its sources lacks.
 */
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import * as Features from "../fixtures/features.ts"
import * as SkeinFeatures from "../fixtures/skeinFeatures.ts"
import { serverCommand } from "../matrix.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

interface CliResult {
  readonly code: number
  readonly result: unknown
  readonly stderr: string
}

let server: RunningServer
/** The home directory of the Inspector, where it stores a catalog of servers. */
let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "skein-inspector-"))
  // The Inspector does not end its sessions.
  server = await startServer(SkeinFeatures.server, { limits: { idleTimeout: "2 seconds" } })
})
afterAll(async () => {
  await server.close()
  await rm(home, { recursive: true })
})

const launcher = fileURLToPath(
  new URL("./clients/launcher/build/index.js", import.meta.resolve("@modelcontextprotocol/inspector/package.json"))
)

const inspect = (args: ReadonlyArray<string>): Promise<CliResult> =>
  new Promise((resolve) => {
    const env = { PATH: process.env["PATH"], HOME: home }
    const child = execFile(
      process.execPath,
      [launcher, "--cli", ...args],
      { env },
      (_, out, err) => {
        resolve({
          code: child.exitCode ?? -1,
          result: out === "" ? undefined : (JSON.parse(out) as { readonly result: unknown }).result,
          stderr: err
        })
      }
    )
  })

const { args, command } = serverCommand("skein", "Features")
const url = (transport: "http" | "sse") => ["--transport", transport, "--server-url", server[transport].url]

/** The arguments that select the server. */
const transports: Readonly<Record<string, () => ReadonlyArray<string>>> = {
  "http, sessions": () => url("http"),
  "http, stateless": () => ["--protocol-era", "modern", ...url("http")],
  "http, negotiated": () => ["--protocol-era", "auto", ...url("http")],
  "http+sse": () => url("sse"),
  stdio: () => [command, ...args]
}

const testedCompletely = new Set(["http, sessions", "stdio"])

const named = (member: string, names: ReadonlyArray<string>, by = "name") => ({
  [member]: expect.toSatisfy((all: ReadonlyArray<Record<string, unknown>>) =>
    all.map((one) => one[by]).toSorted().join() === names.toSorted().join()
  )
})

/** Commands and their results. */
const commands: ReadonlyArray<readonly [args: string, result: object]> = [
  ["tools/list", named("tools", ["add", "cancelled", "count", "echo", "fail", "gallery", "greet", "release", "slow"])],
  ["tools/call --tool-name add --tool-arg a=2 b=40", { structuredContent: { sum: 42 } }],
  ["resources/list", named("resources", Features.resourceUris, "uri")],
  [`resources/read --uri ${Features.textResource.uri}`, { contents: [Features.textResource] }],
  ["prompts/list", { prompts: [{ name: "brief", arguments: [{ name: "topic" }, { name: "tone" }] }] }],
  [
    "prompts/get --prompt-name brief --prompt-args topic=knots",
    { messages: [{ role: "user", content: { type: "text", text: Features.brief("knots", undefined) } }] }
  ]
]

// An option that takes several values must be followed by another option.
const run = (method: string, serverArgs: ReadonlyArray<string>) =>
  inspect(["--method", ...method.split(" "), "--format", "json", "-q", ...serverArgs])

for (const [transport, serverArgs] of Object.entries(transports)) {
  describe.concurrent(`the Inspector over ${transport}`, () => {
    // The other transports differ only in how they connect.
    for (const [method, result] of testedCompletely.has(transport) ? commands : commands.slice(0, 2)) {
      it(method, async ({ expect }) => {
        expect(await run(method, serverArgs())).toMatchObject({ code: 0, result, stderr: "" })
      })
    }
  })
}

describe.concurrent("the Inspector over http shows", () => {
  it("resource templates", async ({ expect }) => {
    const result = { resourceTemplates: [{ uriTemplate: Features.template }] }
    expect(await run("resources/templates/list", url("http"))).toMatchObject({ code: 0, result })
  })

  it("a tool error", async ({ expect }) => {
    const failed = await run("tools/call --tool-name fail", url("http"))
    expect(failed).toMatchObject({ code: 5, result: { isError: true, content: [{ text: Features.failure }] } })
  })

  it("that a resource does not exist", async ({ expect }) => {
    const absent = await run("resources/read --uri test://absent", url("http"))
    expect(absent).toMatchObject({ code: 1, result: undefined, stderr: expect.stringContaining("Resource not found") })
  })
})

it("no session, request or stream of the Inspector remains on the server", () =>
  eventually(async () => {
    const { requests, sessions, streams } = await server.inspect()
    expect({ requests, sessions, streams }).toEqual({ requests: [], sessions: [], streams: 0 })
  }))
