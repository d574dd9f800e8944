/**
 * Programs of other authors that sign a person in with a real browser, at a server that is protected by `Protect` with
 * `DevServer`: the web interface of the MCP Inspector, and `mcp-remote`. Needs Chromium: Debian's package `chromium`, or
 * the executable in `CHROMIUM`.
 */
import { assert, describe, expect, it, vi } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Chromium from "../../packages/client/test/browser/chromium.ts"
import { browser, type Tab } from "../../packages/auth/test/proxy/chromium.ts"
import * as Servers from "../authServers.ts"
import { missingOf, program } from "../published/installation.ts"
import { freePort } from "../../scripts/freePort.ts"

const chromium = Chromium.find()

/** Retries an expectation for up to a minute: the programs start slowly on a busy machine. */
const patiently = <A>(expected: () => A): Promise<A> => vi.waitFor(expected, { interval: 50, timeout: 60_000 })

/** An empty folder. */
const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-auth-browser-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }))
)

/** A program in place of the person's browser, which reports the addresses that it should open. */
const reportingBrowser = Effect.map(folder, (path) => {
  const [command, file] = [join(path, "browser"), join(path, "addresses")]
  writeFileSync(command, `#!/bin/sh\nprintf '%s\\n' "$1" >> '${file}'\n`)
  chmodSync(command, 0o755)
  const addresses = () => existsSync(file) ? readFileSync(file, "utf8").split("\n").filter((line) => line !== "") : []
  return {
    path,
    command,
    addresses,
    /** The address number `n`, once it is there. */
    address: (n: number) =>
      patiently(() => {
        const found = addresses()[n]
        assert.isDefined(found)
        return found!
      })
  }
})

/** Ada signs in and agrees at `DevServer`. */
const signInAsAda = async (tab: Tab) => {
  await tab.press("ada")
  await tab.press("allow")
}

const missingRemote = missingOf(["mcp-remote"])

/** A client of `mcp-remote`, which is a server over stdio to it. */
const throughRemote = (resource: string, person: Effect.Success<typeof reportingBrowser>) =>
  Effect.map(
    Client.make(
      Stdio.transport({
        command: process.execPath,
        args: [program("mcp-remote"), resource, "--silent"],
        env: { BROWSER: person.command, HOME: person.path, MCP_REMOTE_CONFIG_DIR: join(person.path, "remote") }
      })
    ),
    (client) => (name: string) =>
      Effect.map(
        client.callTool(name),
        ({ content }) => (content as ReadonlyArray<{ readonly text: string }>)[0]!.text
      )
  )

const launcher = fileURLToPath(
  new URL("./clients/launcher/build/index.js", import.meta.resolve("@modelcontextprotocol/inspector/package.json"))
)

/** Starts the web interface of the Inspector for a server, and returns its address. */
const inspector = (resource: string, ...args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const home = yield* folder
    const [clientPort, sandboxPort] = yield* Effect.promise(() => Promise.all([freePort(), freePort()]))
    const env = {
      PATH: process.env["PATH"],
      HOME: home,
      CLIENT_PORT: String(clientPort),
      MCP_SANDBOX_PORT: String(sandboxPort),
      MCP_AUTO_OPEN_ENABLED: "false",
      MCP_INSPECTOR_SECRET_STORE: "memory"
    }
    let output = ""
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const all = [launcher, "--web", "--server-url", resource, "--transport", "http", ...args]
        const child = spawn(process.execPath, all, { env, detached: true, stdio: ["ignore", "pipe", "pipe"] })
        const ended = new Promise((resolve) => child.once("close", resolve))
        for (const stream of [child.stdout, child.stderr]) {
          stream.setEncoding("utf8").on("data", (text: string) => void (output += text))
        }
        return { child, ended }
      }),
      ({ child, ended }) =>
        Effect.promise(async () => {
          // The launcher starts another process, of the same group.
          if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
          await ended
        })
    )
    return yield* Effect.promise(() =>
      patiently(() => {
        const found = /http:\/\/127\.0\.0\.1:\S+TOKEN=\w+/.exec(output)?.[0]
        assert.isDefined(found, output)
        return found!
      })
    )
  })

/** Switches the only connection of the Inspector on. */
const connect = async (tab: Tab) => {
  await tab.until("document.querySelector('[role=switch]')")
  await tab.evaluate("document.querySelector('[role=switch]').click()")
}

/** Clicks the button, the tab or the option with this text, once it is there. */
const click = async (tab: Tab, text: string) => {
  const controls = "[...document.querySelectorAll('button, input')]"
  const control = `${controls}.find((one) => (one.innerText.trim() || one.value) === ${JSON.stringify(text)})`
  await tab.until(`${control} !== undefined && !${control}.disabled`)
  await tab.evaluate(`${control}.click()`)
}

const shows = (tab: Tab, text: string) => tab.until(`document.body.innerText.includes(${JSON.stringify(text)})`)

if (chromium === undefined) {
  const name = "a browser is needed: install Debian's `chromium`, or set CHROMIUM to one"
  it.skipIf((process.env["CI"] ?? "") === "")(name, () => assert.fail("there is no Chromium in the PATH"))
} else {
  const newTab = Effect.flatMap(browser(chromium), (open) => Effect.promise(open))

  describe("the MCP Inspector", () => {
    for (const [revision, era] of [["2025-11-25", "legacy"], ["2026-07-28", "modern"]] as const) {
      it.live(
        `${revision} · signs in, calls a tool, and steps up after it has asked for more scopes`,
        () =>
          Effect.gen(function*() {
            const { dev, resource } = yield* Servers.start()
            const address = yield* inspector(resource, "--protocol-era", era)
            const tab = yield* newTab
            yield* Effect.promise(async () => {
              await tab.goto(address)
              await connect(tab)
              await signInAsAda(tab)
              await shows(tab, `MCP ${revision}`)
              await click(tab, "Tools")
              await click(tab, "whoami")
              await click(tab, "Execute Tool")
              await shows(tab, `${dev.issuer} ada`)

              await click(tab, "brew")
              await click(tab, "Execute Tool")
              await shows(tab, "needs additional scope: mcp:write")
              await click(tab, "Authorize")
              await signInAsAda(tab)
              await shows(tab, "Step-up authorization succeeded")
              await click(tab, "Execute Tool")
              await tab.until("/Results\\s+tea/.test(document.body.innerText)")
            })
            expect(yield* dev.counts).toMatchObject({ registrations: 1, authorizations: 2, refreshReuses: 0 })
          }),
        240_000
      )
    }

    it.live("signs in at a proxy, with the person's consent", () =>
      Effect.gen(function*() {
        const { dev, resource } = yield* Servers.startProxied()
        const address = yield* inspector(resource)
        const tab = yield* newTab
        yield* Effect.promise(async () => {
          await tab.goto(address)
          await connect(tab)
          await shows(tab, "asks for access to Tea House")
          await tab.press("allow")
          await signInAsAda(tab)
          await shows(tab, "Connected")
          await click(tab, "Tools")
          await click(tab, "upstream")
          await click(tab, "Execute Tool")
          await tab.until("/Results\\s+ada/.test(document.body.innerText)")
        })
        expect(yield* dev.counts).toMatchObject({ registrations: 0, authorizations: 1 })
      }), 240_000)
  })

  describe.skipIf(missingRemote !== undefined)(missingRemote ?? "mcp-remote", () => {
    it.live(
      "signs in, steps up, and refreshes without the person after it has started again",
      () =>
        Effect.gen(function*() {
          // It refreshes a minute before the end.
          const { dev, resource } = yield* Servers.start({ dev: { accessTokenLifetime: "65 seconds" } })
          const [person, tab] = [yield* reportingBrowser, yield* newTab]
          const answer = (n: number) =>
            Effect.promise(async () => {
              await tab.goto(await person.address(n))
              await signInAsAda(tab)
            })
          yield* Effect.scoped(Effect.gen(function*() {
            const [call] = yield* Effect.all([throughRemote(resource, person), answer(0)], { concurrency: 2 })
            expect(yield* call("whoami")).toBe(`${dev.issuer} ada`)
            const [tea] = yield* Effect.all([call("brew"), answer(1)], { concurrency: 2 })
            expect(tea).toBe("tea")
            expect(yield* dev.counts).toMatchObject({ registrations: 1, authorizations: 2 })
          }))
          yield* Effect.scoped(Effect.gen(function*() {
            const call = yield* throughRemote(resource, person)
            const refreshed = Effect.andThen(call("brew"), dev.counts)
            const { refreshes } = yield* Effect.repeat(Effect.delay(refreshed, "100 millis"), {
              until: ({ refreshes }) => refreshes > 0
            })
            expect(refreshes).toBe(1)
            expect(yield* call("whoami")).toBe(`${dev.issuer} ada`)
          }))
          expect(yield* dev.counts).toMatchObject({ registrations: 1, authorizations: 2, refreshReuses: 0 })
          expect(person.addresses()).toHaveLength(2)
        }),
      240_000
    )

    it.live("signs in at a proxy, with the person's consent", () =>
      Effect.gen(function*() {
        const { dev, resource } = yield* Servers.startProxied()
        const [person, tab] = [yield* reportingBrowser, yield* newTab]
        const answer = Effect.promise(async () => {
          await tab.goto(await person.address(0))
          assert.include(String(await tab.evaluate("document.body.innerText")), "asks for access to Tea House")
          await tab.press("allow")
          await signInAsAda(tab)
        })
        const [call] = yield* Effect.all([throughRemote(resource, person), answer], { concurrency: 2 })
        expect(yield* call("whoami")).toBe(`${new URL(resource).origin} ${dev.issuer} ada`)
        expect(yield* call("upstream")).toBe("ada")
        expect(person.addresses()).toHaveLength(1)
      }), 240_000)
  })
}
