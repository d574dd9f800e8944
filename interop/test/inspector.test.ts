/**
 * The Inspector's command line, which people try a server with: over HTTP in both eras, over HTTP+SSE, and over stdio.
 *
 * Its package has a postinstall script, which is not run and need not be: it only fetches what a checkout of its sources lacks.
 */
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import * as Offer from "../fixtures/offer.ts"
import * as OfferServer from "../fixtures/skein-offer.ts"
import { serverCommand } from "../matrix.ts"
import { serve, type Serving } from "../serving.ts"

interface Ended {
  readonly code: number
  readonly result: unknown
  readonly stderr: string
}

let offer: Serving
/** It keeps a catalog of servers at home. */
let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "skein-inspector-"))
  // It does not end its sessions.
  offer = await serve(OfferServer.server, { sessions: { idleTimeout: "2 seconds" } })
})
afterAll(async () => {
  await offer.close()
  await rm(home, { recursive: true })
})

const launcher = fileURLToPath(
  new URL("./clients/launcher/build/index.js", import.meta.resolve("@modelcontextprotocol/inspector/package.json"))
)

const inspect = (args: ReadonlyArray<string>): Promise<Ended> =>
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

const { args, command } = serverCommand("skein")
const url = (transport: "http" | "sse") => ["--transport", transport, "--server-url", offer[transport].url]

/** How it is told where the server is. */
const doors: Readonly<Record<string, () => ReadonlyArray<string>>> = {
  "http, the session era": () => url("http"),
  "http, the request era": () => ["--protocol-era", "modern", ...url("http")],
  "http, found out": () => ["--protocol-era", "auto", ...url("http")],
  "http+sse": () => url("sse"),
  stdio: () => [command, ...args]
}

const fully = new Set(["http, the session era", "stdio"])

const named = (member: string, names: ReadonlyArray<string>, by = "name") => ({
  [member]: expect.toSatisfy((all: ReadonlyArray<Record<string, unknown>>) =>
    all.map((one) => one[by]).toSorted().join() === names.toSorted().join()
  )
})

/** What it is asked for, and what it shows. */
const asks: ReadonlyArray<readonly [args: string, result: object]> = [
  ["tools/list", named("tools", ["add", "cancelled", "count", "echo", "fail", "gallery", "greet", "release", "slow"])],
  ["tools/call --tool-name add --tool-arg a=2 b=40", { structuredContent: { sum: 42 } }],
  ["resources/list", named("resources", Offer.resourceUris, "uri")],
  [`resources/read --uri ${Offer.textResource.uri}`, { contents: [Offer.textResource] }],
  ["prompts/list", { prompts: [{ name: "brief", arguments: [{ name: "topic" }, { name: "tone" }] }] }],
  [
    "prompts/get --prompt-name brief --prompt-args topic=knots",
    { messages: [{ role: "user", content: { type: "text", text: Offer.brief("knots", undefined) } }] }
  ]
]

// What takes several values is followed by an option.
const shown = (ask: string, at: ReadonlyArray<string>) =>
  inspect(["--method", ...ask.split(" "), "--format", "json", "-q", ...at])

for (const [door, at] of Object.entries(doors)) {
  describe.concurrent(`the Inspector over ${door}`, () => {
    // Those that differ only in how they connect need not say it all again.
    for (const [ask, result] of fully.has(door) ? asks : asks.slice(0, 2)) {
      it(ask, async ({ expect }) => {
        expect(await shown(ask, at())).toMatchObject({ code: 0, result, stderr: "" })
      })
    }
  })
}

describe.concurrent("the Inspector over http shows", () => {
  it("resource templates", async ({ expect }) => {
    const result = { resourceTemplates: [{ uriTemplate: Offer.template }] }
    expect(await shown("resources/templates/list", url("http"))).toMatchObject({ code: 0, result })
  })

  it("that a tool has failed", async ({ expect }) => {
    const failed = await shown("tools/call --tool-name fail", url("http"))
    expect(failed).toMatchObject({ code: 5, result: { isError: true, content: [{ text: Offer.failure }] } })
  })

  it("that there is no such resource", async ({ expect }) => {
    const absent = await shown("resources/read --uri test://absent", url("http"))
    expect(absent).toMatchObject({ code: 1, result: undefined, stderr: expect.stringContaining("Resource not found") })
  })
})

it("the Inspector leaves nothing on the server", () =>
  eventually(async () => {
    const { requests, sessions, streams } = await offer.inspect()
    expect({ requests, sessions, streams }).toEqual({ requests: [], sessions: [], streams: 0 })
  }))
