/** The program that opens a browser. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { existsSync, readFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { commands, open } from "../../src/client/node/browser.ts"
import { directory, program } from "./kit.ts"

const url = "https://login.example/authorize?a=1&b=2"

describe("the command of the browser", () => {
  it("is that of the system, by its path where another could be found first", () => {
    assert.deepStrictEqual(commands(url, {}, "darwin"), [["/usr/bin/open", url]])
    const windows = ["url.dll,FileProtocolHandler", url] as const
    assert.deepStrictEqual(commands(url, { SystemRoot: "D:\\Win" }, "win32"), [
      ["D:\\Win\\System32\\rundll32.exe", ...windows]
    ])
    assert.deepStrictEqual(commands(url, {}, "win32"), [["C:\\Windows\\System32\\rundll32.exe", ...windows]])
    assert.deepStrictEqual(commands(url, { DISPLAY: ":0" }, "linux"), [["xdg-open", url]])
    assert.deepStrictEqual(commands(url, { WAYLAND_DISPLAY: "wayland-0" }, "freebsd"), [["xdg-open", url]])
  })

  it("does not exist on Linux without a display, or with BROWSER=none", () => {
    assert.deepStrictEqual(commands(url, {}, "linux"), [])
    assert.deepStrictEqual(commands(url, { DISPLAY: "" }, "linux"), [])
    for (const platform of ["linux", "darwin", "win32"] as const) {
      assert.deepStrictEqual(commands(url, { BROWSER: " none ", DISPLAY: ":0" }, platform), [])
    }
  })

  it("is first that of BROWSER, with the URL in the place of %s or at the end", () => {
    const entries = ["firefox", " w3m  -x ", "", "open %s --new a%sb"]
    assert.deepStrictEqual(commands(url, { BROWSER: entries.join(delimiter), DISPLAY: ":0" }, "linux"), [
      ["firefox", url],
      ["w3m", "-x", url],
      ["open", url, "--new", `a${url}b`],
      ["xdg-open", url]
    ])
    // A URL is data: it has no patterns of a replacement.
    assert.deepStrictEqual(commands("https://x/$&%s", { BROWSER: "b %s" }, "linux"), [["b", "https://x/$&%s"]])
  })
})

describe("opening a browser", () => {
  const recording = (path: string) =>
    `require("node:fs").writeFileSync(${JSON.stringify(path)}, JSON.stringify(process.argv.slice(2)))`

  it.live("CVE-2025-6514 · gives the URL to the program as one argument, without a shell", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* directory
      const [seen, marker] = [join(at, "seen"), join(at, "marker")]
      const browser = program(at, "browser", recording(seen))
      for (
        const hostile of [
          `https://login.example/?a=$(touch ${marker})&b=\`touch ${marker}\``,
          `https://login.example/;touch ${marker};?x=1&touch ${marker}&|touch ${marker}`,
          `https://login.example/"&touch ${marker}&"'; touch ${marker} #`,
          "https://login.example/?a=%PATH%&b=^&calc.exe&%s",
          "https://user:--new-window@login.example/?$HOME"
        ]
      ) {
        const { href } = new URL(hostile)
        yield* open(new URL(hostile), { BROWSER: browser }, "linux")
        assert.deepStrictEqual(JSON.parse(readFileSync(seen, "utf8")), [href])
        assert.isFalse(existsSync(marker))
      }
    })))

  it.live("starts nothing for a URL that is not http or https", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* directory
      const seen = join(at, "seen")
      const env = { BROWSER: program(at, "browser", recording(seen)) }
      for (const bad of ["file:///etc/passwd", "javascript:1", "calculator:x", "httpx://a"]) {
        const error = yield* Effect.flip(open(new URL(bad), env, "linux"))
        assert.include(error.message, "Only http and https URLs are opened")
      }
      assert.isFalse(existsSync(seen))
    })))

  it.live("goes on with the next program when one is missing or fails, and reports the last failure", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* directory
      const seen = join(at, "seen")
      const failing = program(at, "failing", "process.exit(3)")
      const good = program(at, "good", recording(seen))
      yield* open(new URL(url), { BROWSER: [join(at, "missing"), failing, good].join(delimiter) }, "linux")
      assert.deepStrictEqual(JSON.parse(readFileSync(seen, "utf8")), [url])
      const ended = yield* Effect.flip(open(new URL(url), { BROWSER: failing }, "linux"))
      assert.strictEqual(ended.message, `${failing} opened no browser: it ended with 3`)
      const missing = yield* Effect.flip(open(new URL(url), { BROWSER: join(at, "missing") }, "linux"))
      assert.match(missing.message, /missing did not start: spawn .* ENOENT$/)
      const none = yield* Effect.flip(open(new URL(url), {}, "linux"))
      assert.include(none.message, "this computer has no display")
    })))

  it.live("does not end a browser that is still running", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* directory
      const [begun, seen] = [join(at, "begun"), join(at, "seen")]
      const browser = program(
        at,
        "browser",
        `require("node:fs").writeFileSync(${JSON.stringify(begun)}, ""); setTimeout(() => { ${recording(seen)} }, 300)`
      )
      const exists = (path: string) =>
        Effect.repeat(Effect.sync(() => existsSync(path)), {
          until: (found) => found,
          schedule: Schedule.spaced("20 millis")
        })
      yield* Effect.raceFirst(open(new URL(url), { BROWSER: browser }, "linux"), exists(begun))
      yield* exists(seen)
      assert.deepStrictEqual(JSON.parse(readFileSync(seen, "utf8")), [url])
    })))
})
