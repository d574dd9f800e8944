/** Images and files in the result of `skein call`, and its progress. */
import { assert, describe, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { spawn } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { flag } from "../../../scripts/compileCache.ts"
import { logo } from "./teaHouse.ts"
import { folder, listen, skein, starting } from "./serverKit.ts"

const data = Buffer.from(logo).toString("base64")
const image = { type: "image", mimeType: "image/png", data } as const

const Gallery = McpServer.layer(
  { name: "gallery", version: "1.0.0" },
  Tool.layer(Tool.make("one"), () => Effect.succeed(Tool.result({ content: [{ type: "text", text: "Here" }, image] }))),
  Tool.layer(Tool.make("several"), () =>
    Effect.succeed(Tool.result({
      content: [
        image,
        { type: "audio", mimeType: "audio/mpeg", data },
        { type: "resource", resource: { uri: "x://../../a", mimeType: "x/../y", blob: data } }
      ]
    }))),
  Tool.layer(Tool.make("none", { input: { a: Schema.optionalKey(Schema.String) } }), () => Effect.succeed("Text")),
  Tool.layer(Tool.make("steps"), () =>
    Effect.gen(function*() {
      yield* Progress.report({ progress: 1, total: 2, message: "Half\u001b[2J" })
      yield* Progress.report({ progress: 2, total: 2 })
      return "Done"
    }))
)

const gallery = Effect.gen(function*() {
  const mounted = yield* Effect.acquireRelease(
    Effect.promise(() => NodeHttp.mount(Gallery)),
    (mounted) => Effect.promise(() => mounted.close())
  )
  return yield* listen((request, response) => void mounted.handler(request, response))
})

describe("skein call --output", () => {
  it.live("writes one image to a file, or into a folder that exists, and prints where", () =>
    Effect.gen(function*() {
      const [url, at] = [yield* gallery, yield* folder]
      const file = join(at, "chart.png")
      const { code, err, out } = yield* skein("call", "--output", file, url, "one")
      assert.deepStrictEqual([code, err, out], [
        0,
        [`Wrote ${logo.length} bytes (image/png) to ${file}`],
        [`Here\n[image: image/png, ${logo.length} bytes]`]
      ])
      assert.deepStrictEqual(new Uint8Array(readFileSync(file)), logo)
      yield* skein("call", "--output", at, url, "one")
      assert.deepStrictEqual(readdirSync(at).toSorted(), ["chart.png", "image-1.png"])
    }))

  it.live("writes several into a folder, with names that the server does not choose", () =>
    Effect.gen(function*() {
      const [url, at] = [yield* gallery, yield* folder]
      const to = join(at, "new/out")
      const { code, err } = yield* skein("call", "--output", to, url, "several")
      assert.deepStrictEqual([code, err.length], [0, 3])
      assert.deepStrictEqual(readdirSync(to).toSorted(), ["audio-2.mp3", "file-3.bin", "image-1.png"])
      const taken = join(at, "taken")
      writeFileSync(taken, "mine")
      const refused = yield* skein("call", "--output", taken, url, "several")
      assert.strictEqual(refused.code, 2)
      assert.include(refused.err[0]!, "The result has 3 parts to save: --output must be a folder")
      assert.strictEqual(readFileSync(taken, "utf8"), "mine")
    }))

  it.live("prints a result of text, and exits with 2", () =>
    Effect.gen(function*() {
      const [url, at] = [yield* gallery, yield* folder]
      const { code, err, out } = yield* skein("call", "--output", join(at, "x.png"), url, "none")
      assert.deepStrictEqual([code, out], [2, ["Text"]])
      assert.include(err[0]!, "the result has no image, audio or binary resource")
      mkdirSync(join(at, "empty"))
      const without = yield* skein("call", "--output", "x.png", url)
      assert.deepStrictEqual([without.code, without.out], [2, []])
    }))

  it.live("is suggested on a terminal", () =>
    Effect.gen(function*() {
      const { ran, running } = starting(["call", yield* gallery, "one"], { isTerminal: true })
      yield* running
      assert.deepStrictEqual(ran.err, ["Use --output <file or folder> to save what is not text"])
    }))
})

/** Runs `skein` on a terminal of the system. Returns everything that it shows. */
const onTerminal = (...words: ReadonlyArray<string>): Promise<string> => {
  const skein = join(import.meta.dirname, "../src/bin/skein.ts")
  const line = [process.execPath, "--conditions=@skein/source", flag, skein, ...words].map((word) => `'${word}'`).join(
    " "
  )
  const child = spawn("script", ["-qec", line, "/dev/null"], { stdio: ["pipe", "pipe", "inherit"] })
  return new Promise((done, failed) => {
    let shown = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => void (shown += chunk))
    child.on("error", failed).on("close", () => done(shown))
  })
}

describe("the progress of skein call", () => {
  it.live.skipIf(process.platform !== "linux")(
    "is one line on a terminal, which the result replaces",
    () =>
      Effect.gen(function*() {
        const url = yield* gallery
        const shown = yield* Effect.promise(() => onTerminal("call", url, "steps"))
        const erased = "\r\u001b[2K"
        assert.strictEqual(shown, `${erased}1/2 Half\\u{1b}[2J${erased}2/2${erased}Done\r\n`)
      })
  )

  it.live("is not shown without one", () =>
    Effect.gen(function*() {
      const { err, out } = yield* skein("call", yield* gallery, "steps")
      assert.deepStrictEqual([err, out], [[], ["Done"]])
    }))
})
