/** `Upload`: what its page may send, and what a server retains. */
import { describe, expect, it } from "@effect/vitest"
import * as AppHost from "@skein/apps/AppHost"
import * as Upload from "@skein/apps/Upload"
import * as Client from "@skein/client/Client"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { makeFileReceiver, MaxPartBytes } from "../src/server/fileReceiver.ts"
import * as kit from "./kit.ts"

type Options = Upload.FileOptions & Upload.Bounds

const text = (result: kit.Json): string => result.content.map((block: kit.Json) => block.text).join("\n")

/** A server that lets the user upload files, and records them. */
const uploads = (options: Options = {}, seen: Array<Upload.Uploaded<unknown>> = []) =>
  Upload.layer(Upload.make("upload", { input: { folder: Schema.optionalKey(Schema.String) }, ...options }), {
    ask: () => Effect.succeed({ title: "Which files?" }),
    handle: (uploaded) => Effect.sync(() => (seen.push(uploaded), `${uploaded.files.length} files`))
  })

/** Lets the page send 4 bytes at a time. */
const smallParts = Layer.provide(Layer.succeed(MaxPartBytes, 4))

/** Asks for files, and returns the steps of the page. */
const open = (client: Client.Client, args: {} = {}) =>
  Effect.map(client.callTool("upload", args), (result) => {
    const question = result._meta?.["io.github.skein-mcp/question"] as kit.Json
    const send = (answer: {}) =>
      Effect.map(client.callTool("upload_files", { token: question.token, answer }), (result) =>
        result.isError === true ? `refused: ${text(result)}` : text(result))
    return {
      result,
      question,
      send,
      begin: (...sizes: ReadonlyArray<number>) =>
        send({ step: "begin", files: sizes.map((size, at) => ({ name: `${at}.txt`, type: "text/plain", size })) }),
      part: (file: number, at: number, data: string | Uint8Array) =>
        send({ step: "part", file, at, data: Buffer.from(data as never).toString("base64") }),
      end: send({ step: "end" })
    }
  })

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect(`${revision} · gives the handler the bytes of several files, and the model none`, () =>
      Effect.gen(function*() {
        const seen: Array<Upload.Uploaded<unknown>> = []
        const client = yield* kit.connect({ revision }, [smallParts(uploads({}, seen))])
        for (const tool of yield* client.listTools()) {
          expect(Object.keys(tool).toSorted()).toEqual([
            "_meta",
            ...tool.description ? ["description"] : [],
            "inputSchema",
            "name"
          ])
        }
        const { end, part, question, result, send } = yield* open(client, { folder: "in" })
        expect(text(result)).toContain("The user sees a page that asks \"Which files?\"")
        expect(question).toEqual({
          title: "Which files?",
          upload: "Upload",
          accept: [],
          maxFiles: 10,
          maxFileBytes: 10_485_760,
          maxTotalBytes: 20_971_520,
          maxPartBytes: 4,
          tool: "upload_files",
          token: expect.any(String)
        })
        expect(
          yield* send({
            step: "begin",
            files: [
              { name: "a.TXT", type: "Text/Plain; charset=utf-8", size: 6 },
              { name: "empty", type: "not a type", size: 0 },
              { name: "b\u202E.bin", type: "", size: 3 }
            ]
          })
        ).toBe("")
        // The parts of different files may be mixed.
        expect(yield* part(0, 0, "abcd")).toBe("")
        expect(yield* part(2, 0, new Uint8Array([0, 255, 1]))).toBe("")
        expect(yield* end).toBe("refused: The file \"a.TXT\" has 4 of 6 bytes")
        expect(yield* part(0, 4, "ef")).toBe("")
        expect(yield* end).toBe("3 files")
        expect(seen).toEqual([{
          input: { folder: "in" },
          files: [
            { name: "a.TXT", type: "text/plain", bytes: new TextEncoder().encode("abcdef") },
            { name: "empty", type: "application/octet-stream", bytes: new Uint8Array(0) },
            { name: "b\u202E.bin", type: "application/octet-stream", bytes: new Uint8Array([0, 255, 1]) }
          ]
        }])
        expect(yield* end).toContain("refused: This question is no longer open")
      }))

    it.effect(`${revision} · fails without pages`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision, extensions: {} }, [uploads()])
        expect(text(yield* client.callTool("upload"))).toBe(
          "The user cannot be asked \"Which files?\": the client shows no pages. Nothing was done"
        )
      }))
  })
}

describe("an upload", () => {
  it.effect("is refused beyond each bound, and the user can pick other files", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect({}, [uploads({ limits: { maxFiles: 2, maxFileBytes: 10, maxTotalBytes: 15 } })])
      const { begin, end } = yield* open(client)
      expect(yield* begin()).toBe("refused: Choose a file")
      expect(yield* begin(1, 1, 1)).toBe("refused: 3 files are more than maxFiles (2)")
      expect(yield* begin(11)).toBe("refused: The file \"0.txt\" has 11 bytes, more than maxFileBytes (10)")
      expect(yield* begin(8, 8)).toBe("refused: The files have 16 bytes, more than maxTotalBytes (15)")
      expect(yield* begin(-1)).toContain("refused: ")
      expect(yield* begin(0.5)).toContain("refused: ")
      expect(yield* end).toBe("refused: No files were sent")
      expect(yield* begin(0, 0)).toBe("")
      expect(yield* end).toBe("2 files")
    }))

  it.effect("is refused if a file has another type or a name that is a path", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect({}, [uploads({ accept: [".csv", "image/*", "application/PDF"] })])
      const { send } = yield* open(client)
      const begin = (name: string, type: string) => send({ step: "begin", files: [{ name, type, size: 1 }] })
      for (const [name, type] of [["a.CSV", ""], ["b", "image/png"], ["c", "application/pdf"]] as const) {
        expect(yield* begin(name, type)).toBe("")
      }
      for (
        const [name, type] of [
          ["a.csv.exe", ""],
          ["b", "imagex/png"],
          ["c", "application/pdfx"],
          ["d", "image/"],
          ["e", "text/html, image/png"]
        ] as const
      ) {
        expect(yield* begin(name, type)).toBe(
          `refused: The file "${name}" is not of an accepted type: .csv, image/*, application/PDF`
        )
      }
      for (const name of ["", ".", "..", "../a.csv", "a\\b.csv", "a\0.csv", "a\n.csv", "a".repeat(252) + ".csv"]) {
        expect(yield* begin(name, "text/csv")).toMatch(/^refused: The name ".*" of a file is not allowed$/)
      }
    }))

  it.effect("takes parts in order, of the declared sizes", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect({}, [smallParts(uploads())])
      const { begin, end, part, send } = yield* open(client)
      const problem = "refused: A part of the file \"0.txt\""
      expect(yield* part(0, 0, "ab")).toBe("refused: The part belongs to no file")
      expect(yield* begin(6)).toBe("")
      expect(yield* part(1, 0, "ab")).toBe("refused: The part belongs to no file")
      expect(yield* part(0, 1, "ab")).toBe(`${problem} begins at 1 in the place of 0`)
      expect(yield* part(0, 0, "abcde")).toBe(`${problem} has more than 4 bytes`)
      expect(yield* part(0, 0, "x".repeat(100))).toBe(`${problem} has more than 4 bytes`)
      expect(yield* part(0, 0, "")).toBe(`${problem} has 0 bytes, and 6 are missing`)
      expect(yield* send({ step: "part", file: 0, at: 0, data: "%%%%" })).toBe(`${problem} is not base64`)
      expect(yield* part(0, 0, "abcd")).toBe("")
      expect(yield* part(0, 0, "abcd")).toBe(`${problem} begins at 0 in the place of 4`)
      expect(yield* part(0, 4, "efg")).toBe(`${problem} has 3 bytes, and 2 are missing`)
      expect(yield* part(0, 4, "ef")).toBe("")
      expect(yield* end).toBe("1 files")
      const again = yield* open(client)
      expect(yield* again.begin(2)).toBe("")
      expect(yield* again.send({ step: "cancel" })).toBe("")
      expect(yield* again.part(0, 0, "ab")).toBe("refused: The part belongs to no file")
    }))
})

describe("the bytes of an upload", () => {
  const full = "refused: Too many files arrive at once: maxBufferedBytes (10). Try again later"

  it.effect("are free after its end, its cancellation and a new beginning", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect({}, [uploads({ limits: { maxBufferedBytes: 10 } })])
      const [first, second] = [yield* open(client), yield* open(client)]
      expect(yield* first.begin(6)).toBe("")
      expect(yield* second.begin(5)).toBe(full)
      expect(yield* first.begin(5)).toBe("")
      expect(yield* second.begin(5)).toBe("")
      expect(yield* second.send({ step: "cancel" })).toBe("")
      expect(yield* first.begin(10)).toBe("")
      expect(yield* first.part(0, 0, "0123456789")).toBe("")
      expect(yield* second.begin(1)).toBe(full)
      expect(yield* first.end).toBe("1 files")
      expect(yield* second.begin(10)).toBe("")
    }))

  it.effect("are free if it is abandoned: after transferTimeout, or before it began after timeout", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect({}, [uploads({ limits: { maxBufferedBytes: 10, maxOpenPerClient: 2 } })])
      const [first, second] = [yield* open(client), yield* open(client)]
      yield* TestClock.adjust("9 minutes")
      expect(yield* first.begin(10)).toBe("")
      yield* TestClock.adjust("1 minute")
      expect(yield* second.begin(1)).toContain("no longer open")
      const third = yield* open(client)
      expect(yield* third.begin(1)).toBe(full)
      // A part does not give it more time.
      expect(yield* first.part(0, 0, "01")).toBe("")
      yield* TestClock.adjust("239 seconds")
      expect(yield* third.begin(1)).toBe(full)
      yield* TestClock.adjust("1 second")
      expect(yield* first.part(0, 2, "23")).toContain("no longer open")
      expect(yield* third.begin(10)).toBe("")
    }))

  it.effect("are free when its session ends, also while its handler runs", () =>
    Effect.gen(function*() {
      for (const isRunning of [false, true]) {
        const server = yield* kit.serve(
          Upload.layer(Upload.make("upload", { limits: { maxBufferedBytes: 10 } }), {
            ask: () => Effect.succeed({ title: "Which?" }),
            handle: () => Effect.never
          })
        )
        const connect = Client.make(InMemoryTransport.transport(server.serve), {
          extensions: AppHost.extensions,
          revisions: ["2025-11-25"]
        })
        const scope = yield* Scope.make()
        const first = yield* Effect.flatMap(Scope.provide(connect, scope), open)
        expect(yield* first.begin(10)).toBe("")
        expect(yield* first.part(0, 0, "0123456789")).toBe("")
        const running = isRunning ? yield* Effect.forkChild(first.end) : undefined
        yield* Effect.yieldNow
        const second = yield* Effect.flatMap(connect, open)
        expect(yield* second.begin(1)).toBe(full)
        yield* Scope.close(scope, Exit.void)
        if (running !== undefined) yield* Fiber.await(running)
        yield* Effect.yieldNow
        expect(yield* second.begin(10)).toBe("")
      }
    }))

  it.effect("are free if the handler fails or dies", () =>
    Effect.gen(function*() {
      let isDefect = false
      const failing = Upload.layer(Upload.make("upload", { limits: { maxBufferedBytes: 10 } }), {
        ask: () => Effect.succeed({ title: "Which?" }),
        handle: () => isDefect ? Effect.die("broken") : Effect.fail({ message: "The disk is full" })
      })
      const client = yield* kit.connect({}, [failing])
      const first = yield* open(client)
      expect(yield* first.begin(10)).toBe("")
      expect(yield* first.part(0, 0, "0123456789")).toBe("")
      expect(yield* first.end).toBe("refused: The disk is full")
      isDefect = true
      const second = yield* open(client)
      expect(yield* second.begin(10)).toBe("")
      expect(yield* second.part(0, 0, "0123456789")).toBe("")
      expect(yield* second.end).toMatch(/^refused: The tool .* failed unexpectedly/)
      expect(yield* (yield* open(client)).begin(10)).toBe("")
    }))

  it.effect("of one address do not take the place of others, however many sessions it has", () =>
    Effect.gen(function*() {
      const server = yield* kit.serve(uploads({ limits: { maxBufferedBytes: 20, maxTotalBytes: 5 } }))
      const begun: Array<string> = []
      for (let host = 0; host < 10; host++) {
        const { begin } = yield* open(yield* kit.connectFrom(server, `2001:db8:1:2::${host}`))
        begun.push(yield* begin(5))
      }
      expect(begun.filter((answer) => answer === "")).toHaveLength(2)
      expect(begun[2]).toContain("twice maxTotalBytes (5)")
      expect(yield* (yield* open(yield* kit.connectFrom(server, "192.0.2.1"))).begin(5)).toBe("")
    }))

  it.effect("of clients that no transport tells apart count for maxBufferedBytes alone", () =>
    Effect.gen(function*() {
      const receiver = makeFileReceiver({
        accept: [],
        maxFiles: 1,
        maxFileBytes: 10,
        maxTotalBytes: 5,
        maxBufferedBytes: 15
      }, 10)
      const begin = (question: object) =>
        receiver.begin(question, undefined, [{ name: "a", type: "text/plain", size: 5 }])
      const first = {}
      yield* begin(first)
      yield* begin({})
      yield* begin({})
      expect((yield* Effect.flip(begin({}))).message).toContain("maxBufferedBytes (15)")
      receiver.release(first)
      yield* begin({})
    }))

  it.effect("of one caller do not take the place of others", () =>
    Effect.gen(function*() {
      const server = yield* kit.serve(uploads({ limits: { maxTotalBytes: 10 } }))
      const connect = Client.make(InMemoryTransport.transport(server.serve), { extensions: AppHost.extensions })
      const [greedy, other] = [yield* connect, yield* connect]
      const [first, second, third] = [yield* open(greedy), yield* open(greedy), yield* open(greedy)]
      expect(yield* first.begin(10)).toBe("")
      expect(yield* second.begin(8)).toBe("")
      expect(yield* third.begin(3)).toContain("twice maxTotalBytes (10)")
      expect(yield* (yield* open(other)).begin(10)).toBe("")
    }))
})

it.live("an upload is handled by an async function", () =>
  Effect.gen(function*() {
    const server = new AsyncServer({ name: "shop", version: "1.0.0" }).use(
      Upload.async(Upload.make("upload"), {
        ask: async () => ({ title: "Which?" }),
        handle: async ({ files }, { principal }) => `${files[0]!.name} ${files[0]!.bytes.length} ${principal?.id}`
      })
    )
    const client = yield* Client.make(server.transport(), { extensions: AppHost.extensions })
    const { begin, end, part } = yield* open(client)
    yield* begin(3)
    yield* part(0, 0, "abc")
    expect(yield* end).toBe("0.txt 3 undefined")
  }))
