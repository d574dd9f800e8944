import { expect, it } from "@effect/vitest"
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import * as kit from "./testKit.ts"

it.live("a person signs in to the protected server with skein, calls its tool, and signs out", () =>
  Effect.gen(function*() {
    const port = yield* kit.freePort
    const folder = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(kit.path("../scratchpad/hello-"))),
      (folder) => Effect.promise(() => rm(folder, { recursive: true }))
    )
    const file = join(folder, "protectedServer.ts")
    const program = yield* Effect.promise(() => readFile(kit.path("hello/protectedServer.ts"), "utf8"))
    yield* Effect.promise(() => writeFile(file, program.replaceAll("3000", String(port))))
    const url = yield* kit.urlOf(
      yield* kit.start({ command: process.execPath, args: ["--conditions=@skein/source", file] })
    )
    const skein = (...args: ReadonlyArray<string>) => {
      const cli = [process.execPath, "--conditions=@skein/source", kit.path("../packages/cli/src/bin/skein.ts")]
      return kit.start({ command: "env", args: [`XDG_DATA_HOME=${folder}`, ...cli, ...args] })
    }
    const login = yield* skein("login", "--no-browser", url)
    const page = new URL((yield* Effect.promise(() => login.until(/^ {2}http:\S+$/m))).trim())
    const answer = yield* TestUser.make({ name: "ada" }).signIn(page)
    yield* Effect.promise(() => fetch(`${page.searchParams.get("redirect_uri")}?${answer}`))
    expect([yield* Effect.promise(() => login.ended), login.out()]).toEqual([
      0,
      expect.stringContaining(`Signed in at ${url}\n`)
    ])
    for (
      const [command, args, code, text] of [
        ["call", ["greet", "{\"name\":\"Ada\"}"], 0, "Hello, Ada!\n"],
        ["logout", [], 0, `Signed out of ${url}\n`]
      ] as const
    ) {
      const run = yield* skein(command, url, ...args)
      expect(yield* Effect.promise(() => run.ended)).toBe(code)
      expect(run.out() + run.err()).toContain(text)
    }
  }))
