/** Mistakes of untyped programs: the message that says what to do. */
import { describe, expect, it } from "@effect/vitest"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as Content from "@skein/server/Content"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as kit from "./kit.ts"

/** The reason why a server with this definition is not built. */
const problemOf = (definition: unknown): Effect.Effect<string> =>
  Effect.map(
    Effect.exit(
      Effect.scoped(Layer.build(McpServer.layer({ name: "s", version: "1" }, definition as Layer.Layer<never>)))
    ),
    (exit) => Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "built"
  )

describe("a server", () => {
  for (
    const [name, definition, problem] of [
      ["a tool", Tool.make("t"), "the definition \"t\" needs its handler: use Tool.layer(definition, handler)"],
      ["a prompt", Prompt.make("p"), "the definition \"p\" needs its handler: use Prompt.layer(definition, handler)"],
      ["a resource", Resource.make("a://b"), "the definition \"a://b\" needs its handler: use Resource.layer("],
      [
        "a template",
        ResourceTemplate.make("a://{b}", { name: "n" }),
        "the definition \"a://{b}\" needs its handler: use ResourceTemplate.layer("
      ],
      ["a promise", Promise.resolve(Layer.empty), "a promise is not a layer: await it first"],
      ["a function", () => Layer.empty, "a function is not a layer: call it"],
      ["an async server", new AsyncServer({ name: "a", version: "1" }), "an AsyncServer runs itself"],
      ["nothing", undefined, "expected a layer, and got undefined"],
      ["an object", {}, "expected a layer, such as that of Tool.layer(definition, handler)"]
    ] as ReadonlyArray<readonly [string, unknown, string]>
  ) {
    it.effect(`is not built with ${name} in the place of a layer`, () =>
      Effect.gen(function*() {
        expect(yield* problemOf(definition)).toContain(`s cannot be served: ${problem}`)
        const server = new AsyncServer({ name: "s", version: "1" })
        expect(() => server.use(definition as Layer.Layer<never>)).toThrow(problem)
      }))
  }

  for (const options of ["shop", { info: { name: "s", version: "1" } }, { name: "s" }, undefined]) {
    it.effect(`needs a name and a version, and is not built with ${JSON.stringify(options)}`, () =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(
          Effect.scoped(Layer.build(McpServer.layer(options as unknown as McpServer.Options)))
        )
        expect(String(Exit.isFailure(exit) ? Cause.squash(exit.cause) : "built")).toContain(
          "a server needs a name and a version: pass { name, version } as its options"
        )
        expect(() => new AsyncServer(options as unknown as McpServer.Options)).toThrow(
          "a server needs a name and a version"
        )
      }))
  }

  it.effect("names the options of other libraries", () =>
    Effect.gen(function*() {
      const given = (options: object) => problemOf(Tool.layer(Tool.make("t", options), () => Effect.void))
      expect(yield* given({ inputSchema: {} })).toContain("it has no option inputSchema: it is named input here")
      expect(yield* given({ outputSchema: {} })).toContain("it has no option outputSchema: it is named output here")
      expect(yield* given({ parameters: {} })).toContain("it has no option parameters: it is named input here")
      expect(yield* given({ execute: () => "" })).toContain("the handler is the second argument of Tool.layer")
      const ofPrompt = (options: object) => problemOf(Prompt.layer(Prompt.make("p", options), () => Effect.succeed("")))
      expect(yield* ofPrompt({ input: {} })).toContain(
        "\"p\" is invalid: it has no option input: it is named arguments here"
      )
      expect(yield* ofPrompt({ argsSchema: {} })).toContain("no option argsSchema: it is named arguments here")
      expect(yield* ofPrompt({ complete: {} })).toContain(
        "no option complete: pass it after the handler: Prompt.layer(definition, handler, { complete })"
      )
      expect(yield* ofPrompt({ load: {} })).toContain("the handler is the second argument of Prompt.layer")
      const ofTemplate = (options: object) =>
        problemOf(ResourceTemplate.layer(
          ResourceTemplate.make("a://{b}", { name: "n", ...options }),
          () => Effect.succeed("")
        ))
      expect(yield* ofTemplate({ complete: {} })).toContain("ResourceTemplate.layer(definition, handler, { complete })")
      expect(yield* ofTemplate({ arguments: {} })).toContain("no option arguments: it is named variables here")
      const ofResource = problemOf(Resource.layer(Resource.make("a://b", { load: {} } as object), Effect.succeed("")))
      expect(yield* ofResource).toContain("no option load: the reader is the second argument of Resource.layer")
    }))

  it("refuses a tool without a name, options or handler at once", () => {
    const tool = (...given: ReadonlyArray<unknown>) => () =>
      (new AsyncServer({ name: "s", version: "1" }).tool as (...given: ReadonlyArray<unknown>) => unknown)(...given)
    const problem = "A tool needs a name, options and a handler"
    expect(tool({ name: "t", execute: () => "" })).toThrow(problem)
    expect(tool("t", () => "")).toThrow(problem)
    expect(tool("t", {})).toThrow(problem)
  })

  it("refuses a resource, a template and a prompt without a part at once", () => {
    const server = new AsyncServer({ name: "s", version: "1" }) as unknown as Record<
      string,
      (...given: ReadonlyArray<unknown>) => unknown
    >
    const parts = { resource: "a URI, options and a reader", template: "a URI template, options and a reader" }
    for (const [method, needed] of Object.entries({ ...parts, prompt: "a name, options and a handler" })) {
      for (const given of [[{ name: "t", load: () => "" }], ["a://b", () => ""], ["a://b", {}]]) {
        expect(() => server[method]!(...given)).toThrow(`A ${method} needs ${needed}`)
      }
    }
  })

  it("names its own methods in the place of those of other libraries", () => {
    const server = new AsyncServer({ name: "s", version: "1" }) as unknown as Record<string, () => unknown>
    for (
      const [method, use] of Object.entries({
        addTool: "server.tool(name, { input }",
        registerTool: "server.tool(name, { input }",
        addResource: "server.resource(uri, options",
        registerResource: "server.resource(uri, options",
        addResourceTemplate: "server.template(uriTemplate, options",
        addPrompt: "server.prompt(name, { arguments }",
        registerPrompt: "server.prompt(name, { arguments }",
        connect: "server.runStdio(), server.runHttp()",
        start: "server.runStdio(), server.runHttp()"
      })
    ) {
      expect(() => server[method]!()).toThrow(`An AsyncServer has no method ${method}: use ${use}`)
    }
  })

  it.effect("says how to report progress, also if the handler does not await it", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const report = Tool.async(Tool.make("t"), (_, { progress }) => {
          void (progress as (...given: ReadonlyArray<never>) => Promise<void>)(1 as never, 2 as never)
          return "done"
        })
        const client = yield* kit.client(kit.server(report))
        expect((yield* client.call("t")).isError).toBe(true)
        expect(lines.join("\n")).toContain("Pass one object: progress({ progress: 1, total: 2 })")
      })
    ))
})

describe("a prompt", () => {
  it.effect("may be one message", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(
        kit.server(Prompt.layer(Prompt.make("p"), () => Effect.succeed(Prompt.assistant("a"))))
      )
      expect((yield* client.result("prompts/get", { name: "p" })).messages).toEqual([
        { role: "assistant", content: { type: "text", text: "a" } }
      ])
    }))

  it.effect("names what its handler may return", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const wrong = "a message without a role and a content block"
        for (
          const [value, problem] of [
            [undefined, "nothing"],
            [3, "a number"],
            [null, "null"],
            [{ text: "a" }, "an object"],
            [{ messages: "a" }, "an object"],
            [["a"], wrong],
            [[{ role: "user", content: "a" }], wrong],
            [{ messages: [{ content: "a" }] }, wrong]
          ] as ReadonlyArray<readonly [unknown, string]>
        ) {
          const prompt = Prompt.layer(Prompt.make("p"), () => Effect.succeed(value as never))
          const error = yield* (yield* kit.client(kit.server(prompt))).error("prompts/get", { name: "p" })
          const message =
            `The handler of the prompt p returned ${problem}: return a text, Prompt.user(…), a list of messages, ` +
            "or { messages: [ … ] }"
          expect(error).toEqual({ code: -32603, message })
          expect(lines.at(-1)).toContain(message)
        }
      })
    ))

  it.effect("names what a handler of Prompt.layer that returns no effect must use", () =>
    Effect.gen(function*() {
      const prompt = Prompt.layer(Prompt.make("p"), (async () => "a") as never)
      const { message } = yield* (yield* kit.client(kit.server(prompt))).error("prompts/get", { name: "p" })
      expect(message).toBe(
        "The handler of the prompt p returned a promise, and not an effect: use Prompt.async, or wrap it in Effect.promise"
      )
    }))
})

describe("a reader", () => {
  it.effect("names what it may return", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const expected = "return text, bytes, a list of Content.resourceContents(…), or { contents: [ … ] }"
        for (const [value, kind] of [[3, "a number"], [undefined, "nothing"], [["a"], "a list"], [{}, "an object"]]) {
          const made = Effect.succeed(value as never)
          const template = ResourceTemplate.make("b://{c}", { name: "n" })
          const client = yield* kit.client(
            kit.server(Resource.layer(Resource.make("a://b"), made), ResourceTemplate.layer(template, () => made))
          )
          for (const uri of ["a://b", "b://c"]) {
            const message = `The reader of the resource ${uri} returned ${kind as string}: ${expected}`
            expect(yield* client.error("resources/read", { uri })).toEqual({ code: -32603, message })
            expect(lines.at(-1)).toContain(message)
          }
        }
      })
    ))

  it.effect("names what a reader that is no effect must use", () =>
    Effect.gen(function*() {
      const resource = (read: unknown) => problemOf(Resource.layer(Resource.make("a://b"), read as never))
      const problem = "The resource \"a://b\" is invalid: its reader is"
      expect(yield* resource(() => "a")).toContain(`${problem} a function, and not an effect: use Resource.async`)
      expect(yield* resource(Promise.resolve("a"))).toContain(`${problem} a promise, and not an effect`)
      const template = ResourceTemplate.make("b://{c}", { name: "n" })
      const client = yield* kit.client(kit.server(ResourceTemplate.layer(template, (async () => "a") as never)))
      expect((yield* client.error("resources/read", { uri: "b://c" })).message).toBe(
        "The reader of the resource template b://{c} returned a promise, and not an effect: use ResourceTemplate.async, or " +
          "wrap it in Effect.promise"
      )
    }))
})

describe("Content.image and Content.audio", () => {
  const bytes = (text: string) => Buffer.from(text, "latin1")

  it("find the type of known files", () => {
    const images = {
      "image/png": "\x89PNG\r\n\x1a\n",
      "image/jpeg": "\xff\xd8\xff\xe0",
      "image/gif": "GIF89a",
      "image/webp": "RIFF\xff\x01\x02\x03WEBPVP8 ",
      "image/bmp": "BM\x00\x01"
    }
    for (const [type, start] of Object.entries(images)) {
      expect(Content.image(bytes(`${start}${"x".repeat(100)}`)).mimeType).toBe(type)
      expect(Content.image(bytes(`${start}${"x".repeat(100)}`).toString("base64")).mimeType).toBe(type)
    }
    const sounds = {
      "audio/wav": "RIFF\xff\x01\x02\x03WAVEfmt ",
      "audio/mpeg": "ID3\x04",
      "audio/ogg": "OggS",
      "audio/flac": "fLaC",
      "audio/mp4": "\0\0\0\x1cftypM4A "
    }
    for (const [type, start] of Object.entries(sounds)) {
      expect(Content.audio(bytes(`${start}${"x".repeat(100)}`)).mimeType).toBe(type)
    }
    expect(Content.audio(bytes("\xff\xfb\x90x")).mimeType).toBe("audio/mpeg")
  })

  it("require the type of others", () => {
    expect(() => Content.image(bytes("<svg>"))).toThrow("pass the MIME type, too")
    expect(() => Content.audio(bytes("\x89PNG\r\n\x1a\n"))).toThrow("The bytes are no audio of a known type (audio/wav")
    expect(Content.image(bytes("<svg>"), "image/svg+xml").mimeType).toBe("image/svg+xml")
  })
})
