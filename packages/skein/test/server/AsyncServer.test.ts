/** Servers of the package `skein`: definitions, processes, and the types that authors meet. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import { type } from "arktype"
import {
  assistant,
  AsyncServer,
  Content,
  InputError,
  invalidParams,
  jsonSchema,
  McpError,
  prompt,
  resource,
  resourceNotFound,
  result,
  template,
  tool,
  user,
  VisibleError,
  withJsonSchema
} from "skein"
import * as v from "valibot"
import { z } from "zod"
import { callText, withClient, withTransport } from "./kit.ts"

const shop = () => new AsyncServer({ name: "shop", version: "1.0.0" })

describe("AsyncServer", () => {
  it("serves tools, resources, templates and prompts", () =>
    withClient(
      shop()
        .tool(
          "add",
          { input: z.object({ a: z.number() }), output: z.object({ b: z.number() }) },
          ({ a }) => ({ b: a + 1 })
        )
        .resource("shop://menu", { mimeType: "text/markdown" }, async () => "# Tea")
        .template("shop://{id}", { name: "one" }, ({ id }, uri) => {
          if (id === "none") throw resourceNotFound(uri)
          return `${id.toUpperCase()} ${uri}`
        })
        .prompt(
          "greet",
          { arguments: z.object({ name: z.string() }) },
          ({ name }) => [user("Hello"), assistant(name)],
          {
            complete: { name: async () => ["Ada"] }
          }
        ),
      async (client) => {
        expect(client.server?.name).toBe("shop")
        expect((await client.callTool("add", { a: 1 })).structuredContent).toEqual({ b: 2 })
        expect(await client.readResource("shop://menu")).toMatchObject({ contents: [{ text: "# Tea" }] })
        expect(await client.readResource("shop://x")).toMatchObject({ contents: [{ text: "X shop://x" }] })
        await expect(client.readResource("shop://none")).rejects.toThrow("Resource not found")
        const { messages } = await client.getPrompt("greet", { name: "Ada" })
        expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"])
        const ref = { type: "ref/prompt", name: "greet" } as const
        const completed = await client.complete({ ref, argument: { name: "name", value: "" } })
        expect(completed.completion.values).toEqual(["Ada"])
      }
    ))

  it("takes the same definitions with use", () =>
    withClient(
      shop().use(
        tool("add", { input: z.object({ a: z.number() }) }, ({ a }) => a + 1),
        resource("shop://menu", {}, () => "# Tea"),
        template(
          "shop://{id}",
          { name: "one", variables: z.object({ id: z.coerce.number() }) },
          ({ id }) => `${id + 1}`
        ),
        prompt("greet", {}, () => "Hello")
      ),
      async (client) => {
        expect(await callText(client, "add", { a: 1 })).toBe("2")
        expect(await client.readResource("shop://1")).toMatchObject({ contents: [{ text: "2" }] })
        expect(await client.getPrompt("greet")).toMatchObject({ messages: [{ content: { text: "Hello" } }] })
      }
    ))

  it("reads arguments by schemas of Zod, ArkType and Valibot, and by JSON Schema", () =>
    withClient(
      shop()
        .tool("zod", { input: z.object({ n: z.int().default(2) }) }, ({ n }) => {
          expectTypeOf(n).toEqualTypeOf<number>()
          return n
        })
        .tool("arktype", { input: type({ n: "number" }) }, ({ n }) => {
          expectTypeOf(n).toEqualTypeOf<number>()
          return n
        })
        .tool("valibot", { input: withJsonSchema(v.object({ n: v.number() }), { type: "object" }) }, ({ n }) => {
          expectTypeOf(n).toEqualTypeOf<number>()
          return n
        })
        .tool("json", { input: jsonSchema<{ readonly n: number }>({ type: "object", required: ["n"] }) }, ({ n }) => {
          expectTypeOf(n).toEqualTypeOf<number>()
          return n
        })
        .tool("none", {}, (input) => {
          expectTypeOf(input).toEqualTypeOf<{}>()
        }),
      async (client) => {
        expect(await callText(client, "zod", {})).toBe("2")
        for (const name of ["arktype", "valibot", "json"]) {
          expect(await callText(client, name, { n: 3 })).toBe("3")
          expect((await client.callTool(name, {})).isError).toBe(true)
        }
        expect((await client.callTool("none")).content).toEqual([])
      }
    ))

  it("sends the messages of visible errors, and a reference for others", () =>
    withClient(
      shop()
        .tool("visible", {}, () => {
          throw new VisibleError("No tea is left", { cause: new Error("password") })
        })
        .tool("code", {}, async () => {
          throw invalidParams("bad", { field: "n" })
        })
        .tool("secret", {}, () => Promise.reject(new Error("password"))),
      async (client) => {
        expect(await client.callTool("visible")).toMatchObject({ isError: true, content: [{ text: "No tea is left" }] })
        await expect(client.callTool("code")).rejects.toThrow("bad")
        expect(await callText(client, "secret")).not.toContain("password")
        expect(invalidParams("x")).toBeInstanceOf(McpError)
        expect(new McpError({ reason: "Other", code: 7, message: "x" })).toBeInstanceOf(Error)
      }
    ))

  it("asks the user, reports progress, and runs a function once", () => {
    const reports: Array<number> = []
    let runs = 0
    return withClient(
      shop().tool("book", {}, async (_, { elicit, once, progress }) => {
        await progress({ progress: 1, total: 2 })
        const id = await once("id", async () => ++runs)
        expectTypeOf(id).toEqualTypeOf<number>()
        const answer = await elicit("How many?", z.object({ people: z.int() }))
        if (answer.action !== "accept") throw new VisibleError(answer.action)
        expectTypeOf(answer.content).toEqualTypeOf<{ people: number }>()
        return `${id} ${answer.content.people}`
      }),
      async (client) => {
        const called = await client.callTool("book", {}, { onProgress: ({ progress }) => reports.push(progress) })
        expect(called.content).toMatchObject([{ text: "1 2" }])
        expect(runs).toBe(1)
        expect(reports[0]).toBe(1)
      },
      { elicit: () => ({ action: "accept", content: { people: 2 } }) }
    )
  })

  it("rejects an input request with InputError if the client lacks the capability", () =>
    withClient(
      shop().tool("sum", {}, async (_, { sample }) => {
        try {
          return (await sample({ messages: "Sum up", maxTokens: 10 })).model
        } catch (error) {
          if (error instanceof InputError) return `${error.reason._tag} ${error.method}`
          throw error
        }
      }),
      async (client) => expect(await callText(client, "sum")).toBe("MissingCapability sampling/createMessage")
    ))

  it("adds and removes definitions while it runs, and notifies subscribers", () => {
    const server = shop().tool("a", {}, () => "a").resource("shop://menu", {}, () => "# Tea")
    return withClient(server, async (client) => {
      const remove = await server.add(tool("b", {}, () => "b"))
      expect(await callText(client, "b")).toBe("b")
      await expect(server.add(tool("a", {}, () => "again"))).rejects.toThrow("a")
      await remove()
      await expect(client.callTool("b")).rejects.toThrow("b")
      for await (const change of client.changes({ uris: ["shop://menu"] })) {
        if (change._tag === "Subscribed") await server.updated("shop://menu")
        if (change._tag === "ResourceUpdated") return expect(change.uri).toBe("shop://menu")
      }
    })
  })

  it("listens on HTTP", async () => {
    const server = shop().tool("host", {}, (_, { header }) => header("Host") ?? "none")
    const listening = await server.listen({ port: 0, health: true, cors: true })
    try {
      expect(await fetch(new URL("/readyz", listening.url)).then(({ status }) => status)).toBe(200)
      await withTransport(listening.url as never, async (client) => {
        expect(await callText(client, "host")).toContain(`:${listening.port}`)
      })
    } finally {
      await listening.close()
    }
  })

  it("passes the principal of an in-memory transport to handlers", () =>
    withTransport(
      shop().tool("who", {}, (_, { principal }) => principal?.id ?? "nobody").transport({ principal: { id: "ada" } }),
      async (client) => expect(await callText(client, "who")).toBe("ada")
    ))

  it("names the mistake of a value that is not a definition", () => {
    expect(() => shop().use(shop() as never)).toThrow("an AsyncServer runs itself")
    expect(() => shop().use((() => "x") as never)).toThrow("use tool(name, options, handler)")
    expect(() => (shop().tool as (...given: Array<unknown>) => unknown).call(shop(), "x", () => "y")).toThrow(
      "A tool needs a name, options and a handler"
    )
    const started = shop()
    started.transport()
    expect(() => started.use(tool("late", {}, () => "x"))).toThrow("has started")
  })
})

describe("Content", () => {
  it("makes blocks and results", () =>
    withClient(
      shop()
        .tool("blocks", {}, () => [
          Content.text("a", { annotations: { priority: 1 } }),
          Content.image(Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])),
          Content.audio("UklGRiQAAABXQVZF"),
          Content.resource("shop://a", "A"),
          Content.resourceLink({ uri: "shop://b", name: "b" })
        ])
        .tool("image", {}, () => Content.imageFile(new URL("none/secret.png", import.meta.url)))
        .tool("audio", {}, () => Content.audioFile(import.meta.filename))
        .tool("whole", { output: z.object({ n: z.number() }) }, () => result({ structured: { n: 1 }, content: "one" })),
      async (client) => {
        const { content } = await client.callTool("blocks")
        expect(content.map((block) => block.type)).toEqual(["text", "image", "audio", "resource", "resource_link"])
        const problem = await callText(client, "image")
        expect(problem).toContain("The file \"secret.png\" cannot be sent: it does not exist")
        expect(await callText(client, "audio")).toContain("of a known type")
        expect(await client.callTool("whole")).toMatchObject({
          structuredContent: { n: 1 },
          content: [{ text: "one" }]
        })
      }
    ))
})

/** The types of mistakes. They are compiled, and never called. */
export const mistakes = (server: AsyncServer) => {
  // @ts-expect-error A tool needs options before its handler
  server.tool("t", async () => "x")
  // @ts-expect-error Pass the schema of the whole `input`
  server.tool("t", { input: { city: z.string() } }, () => "x")
  // @ts-expect-error The `input` of a tool must be an object
  server.tool("t", { input: z.array(z.string()) }, () => "x")
  // @ts-expect-error It is named `input` here
  server.tool("t", { inputSchema: z.object({}) }, () => "x")
  // @ts-expect-error A function has no JSON
  server.tool("t", {}, () => () => 1)
  // @ts-expect-error Return the content blocks themselves
  server.tool("t", {}, () => ({ content: [{ type: "text", text: "x" }] }))
  // @ts-expect-error A Map has no JSON
  server.tool("t", {}, async () => new Map())
  // @ts-expect-error Bytes have no JSON
  tool("t", {}, async () => new Uint8Array(1))
  // @ts-expect-error `n` does not match `output`
  server.tool("t", { output: z.object({ n: z.number() }) }, () => ({ n: "1" }))
  // @ts-expect-error The template has no variable name
  server.template("a://{id}", { name: "a", variables: z.object({ name: z.string() }) }, () => "x")
  // @ts-expect-error There is no variable of that name
  server.template("a://{id}", { name: "a" }, ({ name }) => name)
  // @ts-expect-error `n` of `arguments` does not read text
  server.prompt("p", { arguments: z.object({ n: z.number() }) }, () => "x")
  // @ts-expect-error The completed argument does not exist
  server.prompt("p", { arguments: z.object({ n: z.string() }) }, () => "x", { complete: { m: ["1"] } })
  // @ts-expect-error The field `place` of a form must be a text
  server.tool("t", {}, (_, { elicit }) => elicit("?", z.object({ place: z.object({ x: z.number() }) })))
  // @ts-expect-error Pass the schema of the whole form
  server.tool("t", {}, (_, { elicit }) => elicit("?", { sure: z.boolean() }))
  // @ts-expect-error Pass one object
  server.tool("t", {}, (_, { progress }) => progress(1, 2))
  // @ts-expect-error JSON cannot hold a part of the result
  server.tool("t", {}, async (_, { once }) => void (await once("k", () => new Map())))
  // @ts-expect-error A definition is a value of this package
  server.use({})
}
