/** Images and audio by their path. */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeContent from "@skein/server/NodeContent"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as kit from "./kit.ts"

const png = Buffer.from("\x89PNG\r\n\x1a\nrest", "latin1")
const wav = Buffer.from("RIFF\xff\x01\x02\x03WAVEfmt ", "latin1")

/** A folder with files, which is removed with the scope. */
const makeFolder = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "skein-content-"))
    writeFileSync(join(folder, "chart.png"), png)
    writeFileSync(join(folder, "bell.wav"), wav)
    writeFileSync(join(folder, "drawing.svg"), "<svg/>")
    writeFileSync(join(folder, "largest.png"), png)
    truncateSync(join(folder, "largest.png"), 3_000_000)
    writeFileSync(join(folder, "large.png"), png)
    truncateSync(join(folder, "large.png"), 3_000_001)
    mkdirSync(join(folder, "folder.png"))
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const imageOf = (data: Buffer, mimeType: string) => ({ type: "image", data: data.toString("base64"), mimeType })

describe("NodeContent", () => {
  it.effect("reads an image and audio by a path or a URL, and finds their types", () =>
    Effect.gen(function*() {
      const folder = yield* makeFolder
      const path = join(folder, "chart.png")
      expect(yield* NodeContent.image(path)).toEqual(imageOf(png, "image/png"))
      expect(yield* NodeContent.image(pathToFileURL(path))).toEqual(imageOf(png, "image/png"))
      expect(yield* Effect.promise(() => NodeContent.imageAsync(path))).toEqual(imageOf(png, "image/png"))
      const audio = { type: "audio", data: wav.toString("base64"), mimeType: "audio/wav" }
      expect(yield* NodeContent.audio(join(folder, "bell.wav"))).toEqual(audio)
      expect(yield* Effect.promise(() => NodeContent.audioAsync(join(folder, "bell.wav")))).toEqual(audio)
      expect((yield* NodeContent.image(join(folder, "largest.png"))).mimeType).toBe("image/png")
    }))

  it.effect("takes a type and options", () =>
    Effect.gen(function*() {
      const annotations = { priority: 1 }
      const path = join(yield* makeFolder, "drawing.svg")
      const drawing = { ...imageOf(Buffer.from("<svg/>"), "image/svg+xml"), annotations }
      expect(yield* NodeContent.image(path, "image/svg+xml", { annotations })).toEqual(drawing)
      expect(yield* Effect.promise(() => NodeContent.imageAsync(path, "image/svg+xml", { annotations }))).toEqual(
        drawing
      )
    }))

  it.effect("refuses other files, and names them without their folder", () =>
    Effect.gen(function*() {
      const folder = yield* makeFolder
      const problem = (path: string) =>
        Effect.map(Effect.flip(NodeContent.image(path)), ({ message }) => {
          expect(message).not.toContain(folder)
          return message
        })
      expect(yield* problem(join(folder, "none.png"))).toBe("The file \"none.png\" cannot be sent: it does not exist")
      expect(yield* problem(join(folder, "folder.png"))).toBe("The file \"folder.png\" cannot be sent: it is a folder")
      expect(yield* problem(join(folder, "large.png"))).toBe(
        "The file \"large.png\" cannot be sent: it has 3000001 bytes, more than 3000000"
      )
      expect(yield* problem(join(folder, "bell.wav"))).toContain("pass the MIME type, too")
      if (process.platform === "win32") return
      expect(yield* problem("/dev/zero")).toBe("The file \"zero\" cannot be sent: it is not a regular file")
      const pipe = join(folder, "pipe.png")
      expect(spawnSync("mkfifo", [pipe]).status).toBe(0)
      expect(yield* problem(pipe)).toBe("The file \"pipe.png\" cannot be sent: it is not a regular file")
    }))

  it.effect("is the result of a tool, and its failure is one that the model reads", () =>
    Effect.gen(function*() {
      const folder = yield* makeFolder
      const server = McpServer.layer(
        { name: "s", version: "1" },
        Tool.layer(Tool.make("effect"), () => NodeContent.image(join(folder, "chart.png"))),
        Tool.async(Tool.make("promise"), async () => [await NodeContent.imageAsync(join(folder, "chart.png"))]),
        Tool.layer(Tool.make("missing"), () => NodeContent.image(join(folder, "none.png"))),
        Tool.async(Tool.make("missing promise"), () => NodeContent.imageAsync(join(folder, "none.png")))
      )
      const client = yield* kit.client(server)
      const call = (name: string) => client.result("tools/call", { name, arguments: {} })
      for (const name of ["effect", "promise"]) {
        expect((yield* call(name)).content).toEqual([imageOf(png, "image/png")])
      }
      for (const name of ["missing", "missing promise"]) {
        const text = "The file \"none.png\" cannot be sent: it does not exist"
        expect(yield* call(name)).toMatchObject({ isError: true, content: [{ type: "text", text }] })
      }
    }))
})
