/** Modules that `skein generate-client` generates: they are type-checked, and run against the server. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Prompt from "@skein/server/Prompt"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { execFile, spawn } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { clientModule, type Offered } from "../src/internal/generate/clientModule.ts"
import { skein, teaHouse } from "./serverKit.ts"

const root = join(import.meta.dirname, "../../..")

/** A folder in this package, where the generated modules find the packages that they import. */
const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = join(import.meta.dirname, `.generated-${process.pid}-${Math.random().toString(36).slice(2)}`)
    mkdirSync(path)
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Starts the everything server. Returns its URL. */
const everything = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const main = join(root, "examples/everything/main.ts")
      const child = spawn(process.execPath, ["--conditions=@skein/source", main, "--port", "0"], { cwd: root })
      let output = ""
      const url = await new Promise<string>((resolve, reject) => {
        const read = (chunk: Buffer) => {
          output += chunk.toString()
          const found = /http:\/\/\S+\/mcp/.exec(output)?.[0]
          if (found !== undefined) resolve(found)
        }
        child.stdout.on("data", read)
        child.stderr.on("data", read)
        child.on("exit", () => reject(new Error(output)))
      })
      return { child, url }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  ),
  ({ url }) => url
)

/** The errors of the type checker, with the strict settings of this repository. */
const typeErrors = (path: string) =>
  Effect.promise(() => {
    const config = {
      extends: join(root, "tsconfig.base.json"),
      compilerOptions: { noEmit: true, composite: false, incremental: false, skipLibCheck: true, plugins: [] },
      include: ["*.ts"]
    }
    writeFileSync(join(path, "tsconfig.json"), JSON.stringify(config))
    return new Promise<string>((resolve) =>
      execFile(
        process.execPath,
        [join(root, "node_modules/typescript/bin/tsc"), "-p", path],
        { cwd: root, maxBuffer: 16 * 1024 * 1024 },
        (_, stdout, stderr) => resolve(stdout + stderr)
      )
    )
  })

const nothing: Offered = { server: undefined, tools: [], prompts: [], resources: [], templates: [] }
const tool = (name: string, inputSchema: object = { type: "object" }, more: object = {}) =>
  ({ name, inputSchema, ...more }) as Offered["tools"][number]

/** A generated client, whose functions this file does not know when it is compiled. */
type Made = {
  readonly [part in "tools" | "prompts" | "templates"]: {
    readonly [name: string]: (...input: ReadonlyArray<unknown>) => Effect.Effect<any>
  }
}

describe("skein generate-client", () => {
  it.live(
    "writes a module that type-checks and calls the tools, the same each time, and checks it",
    () =>
      Effect.gen(function*() {
        const path = yield* folder
        const out = join(path, "everything.ts")
        const server = yield* everything
        const absent = yield* skein("generate-client", "--check", "--out", out, server)
        expect([absent.code, absent.err.join()]).toEqual([1, expect.stringContaining("does not exist")])
        expect((yield* skein("generate-client", "--out", out, server)).code).toBe(0)
        const text = readFileSync(out, "utf8")
        expect((yield* skein("generate-client", "--check", "--out", out, server)).code).toBe(0)
        writeFileSync(out, `${text} `)
        expect((yield* skein("generate-client", "--check", "--out", out, server)).code).toBe(1)
        writeFileSync(out, text)
        expect(yield* typeErrors(path)).toBe("")
        const small = yield* skein("generate-client", "--max-chars", "10", server)
        expect([small.code, small.err.join()]).toEqual([4, expect.stringContaining("--max-chars (10)")])
        expect((yield* skein("generate-client", "--check", teaHouse)).code).toBe(2)
      }).pipe(Effect.scoped),
    300_000
  )

  it.live("types arguments and results, and fails with what the server reports", () =>
    Effect.gen(function*() {
      const Server = McpServer.layer(
        { name: "shop", version: "1.0.0" },
        Tool.layer(
          Tool.make("add_numbers", {
            description: "Adds two numbers",
            input: { a: Schema.Finite, b: Schema.optionalKey(Schema.Finite) },
            output: Schema.Struct({ sum: Schema.Finite })
          }),
          ({ a, b = 0 }) => Effect.succeed({ sum: a + b })
        ),
        Tool.layer(Tool.make("refuse"), () => Effect.fail({ message: "Not today" })),
        Tool.layer(Tool.make("greet", { input: { name: Schema.String } }), ({ name }) =>
          Effect.succeed(`Hello, ${name}`)),
        Prompt.layer(Prompt.make("review", { arguments: { code: Schema.String } }), ({ code }) =>
          Effect.succeed(code)),
        ResourceTemplate.layer(
          ResourceTemplate.make("notes://{id}", { name: "note" }),
          ({ id }) => Effect.succeed(`Note ${id}`)
        )
      )
      const { serve } = Context.get(yield* Layer.build(Server), McpServer.McpServer)
      const client = yield* Client.make(InMemoryTransport.transport(serve))
      const { notes, text } = clientModule({
        server: "shop",
        tools: yield* client.listTools(),
        prompts: yield* client.listPrompts(),
        resources: [],
        templates: yield* client.listResourceTemplates()
      })
      expect(notes).toEqual([])
      const path = yield* folder
      writeFileSync(join(path, "shop.ts"), text)
      writeFileSync(
        join(path, "use.ts"),
        `import * as Shop from "./shop.ts"
declare const client: Shop.Caller
const shop = Shop.make(client)
export const calls = [
  shop.tools.addNumbers({ a: 1 }),
  // @ts-expect-error a is required
  shop.tools.addNumbers({ b: 1 }),
  // @ts-expect-error c does not exist
  shop.tools.addNumbers({ a: 1, c: 1 }),
  shop.prompts.review({ code: "x" }),
  // @ts-expect-error code is required
  shop.prompts.review({}),
  shop.templates.note({ id: 1 })
]
`
      )
      expect(yield* typeErrors(path)).toBe("")
      const { make } = yield* Effect.promise(() =>
        import(pathToFileURL(join(path, "shop.ts")).href) as Promise<{ readonly make: (caller: unknown) => Made }>
      )
      const shop = make(client)
      expect(yield* shop.tools["addNumbers"]!({ a: 1, b: 2 })).toEqual({ sum: 3 })
      expect((yield* shop.tools["greet"]!({ name: "Ada" })).content).toEqual([{ type: "text", text: "Hello, Ada" }])
      const refused = yield* Effect.flip(
        shop.tools["refuse"]!() as Effect.Effect<any, { readonly reason: { readonly _tag: string } }>
      )
      expect(refused.reason._tag).toBe("ToolFailed")
      expect((yield* shop.prompts["review"]!({ code: "x" })).messages[0].content.text).toBe("x")
      expect((yield* shop.templates["note"]!({ id: "a b" })).contents[0].text).toBe("Note a b")
    }).pipe(Effect.scoped), 300_000)

  it.live("type-checks for any names, descriptions and schemas", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const texts = [
        "*/ export const evil = 1 /*",
        "\"); evil(); (\"",
        "`${evil}`",
        "\\",
        "a\u2028b\u202e",
        "// @ts-nocheck\n@ts-ignore",
        "__proto__",
        "constructor",
        "make",
        "client",
        "Schema",
        "class",
        "1st",
        "",
        "  ",
        "é漢",
        "a_b",
        "aB",
        "a-b",
        "x".repeat(300)
      ]
      const schemas = [
        {
          type: "object",
          properties: Object.fromEntries(texts.map((text) => [text, { type: "string", description: text }]))
        },
        {
          type: "object",
          properties: { t: { $ref: "#/$defs/Tree" } },
          $defs: {
            Tree: {
              type: "object",
              properties: {
                kids: { type: "array", items: { $ref: "#/$defs/Tree" } },
                leaf: { $ref: "#/$defs/ReadonlyArray" }
              }
            },
            ReadonlyArray: { enum: texts }
          }
        },
        {
          type: "object",
          properties: { a: { contains: {} }, b: { const: { x: 1 } }, c: { pattern: "(a+)+$", type: "string" } },
          required: ["a"]
        },
        {
          type: "object",
          allOf: [{ properties: { a: { type: "number" } } }, { properties: { b: { type: "string" } } }]
        },
        {
          type: "object",
          anyOf: [{ properties: { a: { type: "number" } }, required: ["a"] }, { properties: { b: { type: "string" } } }]
        },
        {
          type: "object",
          properties: { x: { $ref: "#" }, y: { $ref: "https://evil.example/x" }, z: { type: ["string", "null"] } }
        },
        { type: "object", additionalProperties: { type: "number" }, properties: { n: { type: "string" } } },
        { type: "object", properties: { deep: JSON.parse(`${"{\"items\":".repeat(200)}{}${"}".repeat(200)}`) } }
      ]
      const { text } = clientModule({
        server: texts[0],
        tools: [
          ...texts.map((text, at) =>
            tool(text, schemas[at % schemas.length], { description: texts.join("\n"), title: text })
          ),
          ...schemas.map((schema, at) => tool(`out ${at}`, { type: "object" }, { outputSchema: schema }))
        ],
        prompts: texts.map((name) => ({
          name,
          description: name,
          arguments: texts.map((name) => ({ name, description: name }))
        })),
        resources: texts.map((name) => ({ name, uri: `x:${name}`, description: name })),
        templates: texts.map((name) => ({ name, uriTemplate: "notes://{id}{?q}", description: name }))
      } as Offered)
      writeFileSync(join(path, "hostile.ts"), text)
      expect(yield* typeErrors(path)).toBe("")
      expect(text).not.toMatch(/[\u2028\u202e]/)
      const made = yield* Effect.promise(() => import(pathToFileURL(join(path, "hostile.ts")).href))
      expect("evil" in made).toBe(false)
      expect(Object.keys(made.make({}).tools).length).toBe(texts.length + schemas.length)
    }).pipe(Effect.scoped), 300_000)
})

it("a server that offers nothing has an empty client", () => {
  expect(clientModule(nothing).text).toMatch(/export const make = \(_client: Caller\) => \(\{\n\n\}\)/)
})
