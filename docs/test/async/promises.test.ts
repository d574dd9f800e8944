/** The programs of `promises.md`, with the services in `programs/teaShop.ts` and `programs/orders.ts`. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AsyncServer } from "skein"
import { AsyncClient, type ConnectOptions } from "skein/client"
import { memoryTasks, tasks } from "skein/tasks"
import { done } from "../../programs/orders.ts"
import { shop } from "../../programs/promises.ts"
import * as Context from "../../programs/promisesContext.ts"
import * as Host from "../../programs/promisesHost.ts"
import * as Pool from "../../programs/promisesPool.ts"
import * as Desk from "../../programs/promisesEnds.ts"
import { listen } from "../../programs/promisesServed.ts"
import { makeBuy } from "../../programs/promisesTasks.ts"
import { describe, expect, it } from "vitest"
import { program, whileStarted } from "../runtime.ts"

/** A client whose user fills in forms, or declines them. */
const connect = (
  server: AsyncServer,
  content: Record<string, string | number> | undefined,
  revisions: ConnectOptions["revisions"] = ["2026-07-28"]
): Promise<AsyncClient> =>
  AsyncClient.connect(server.transport(), {
    revisions,
    elicit: () => content === undefined ? { action: "decline" } : { action: "accept", content }
  })

const textOf = ({ content: [first] }: { readonly content: ReadonlyArray<object> }) =>
  first !== undefined && "text" in first ? first.text : undefined

describe("programs/promises.ts", () => {
  it("answers with a price, with the message of a visible error, with the list and with the prompt", async () => {
    await using client = await connect(shop, undefined)
    expect(textOf(await client.callTool("price", { tea: "sencha", grams: 50 }))).toBe("4.5 €")
    expect(await client.callTool("price", { tea: "mate" })).toMatchObject({
      isError: true,
      content: [{ text: "There is no tea \"mate\". Read shop://prices for all teas" }]
    })
    expect((await client.readResource("shop://prices")).contents).toMatchObject([
      { text: "{\"sencha\":900,\"oolong\":1200}" }
    ])
    expect((await client.getPrompt("advise", { guest: "Ada" })).messages[0]!.content)
      .toMatchObject({ text: expect.stringContaining("a tea to Ada") })
  })

  it.each(["2025-11-25", "2026-07-28"] as const)("%s · asks how much, and orders it", async (revision) => {
    await using client = await connect(shop, { grams: 250 }, [revision])
    expect(textOf(await client.callTool("order", { tea: "oolong" }))).toMatch(/^Order [0-9a-f]{4}: 250 g of oolong$/)
  })
})

describe("programs/promisesClass.ts", () => {
  it("serves HTTP as a process", () =>
    whileStarted("promisesClass", async (url) => {
      await using client = await AsyncClient.connect(url)
      expect(textOf(await client.callTool("price", { tea: "oolong" }))).toBe("12 €")
      expect(await client.callTool("price", { tea: "mate" })).toMatchObject({
        isError: true,
        content: [{ text: "There is no tea \"mate\"" }]
      })
      expect((await client.readResource("shop://menu")).contents).toMatchObject([{ text: "# Tea" }])
      expect((await client.getPrompt("advise")).messages).toMatchObject([{ content: { text: "Recommend a tea." } }])
    }))
})

describe("programs/promisesServed.ts", () => {
  it("finds the caller, and refuses, completes, notifies and answers beside the endpoint", async () => {
    const { close, url } = await listen(0)
    const as = (user: string) => AsyncClient.connect({ url, headers: { authorization: `Bearer ${user}` } })
    try {
      await using ada = await as("ada")
      expect(textOf(await ada.callTool("order"))).toBe("A pot of tea for ada")
      await using bob = await as("bob")
      await expect(bob.callTool("order")).rejects.toThrow("Read only")
      await expect(as("eve")).rejects.toThrow("401")
      const ref = { type: "ref/resource" as const, uri: "shop://teas/{tea}" }
      expect((await ada.complete({ ref, argument: { name: "tea", value: "oo" } })).completion.values).toEqual([
        "oolong"
      ])
      for await (const change of ada.changes({ uris: ["shop://menu"] })) {
        if (change._tag === "ResourceUpdated") break
        const put = await fetch(new URL("/menu", url), { method: "PUT", body: "# Coffee" })
        expect(put.status).toBe(204)
      }
      expect((await ada.readResource("shop://menu")).contents).toMatchObject([{ text: "# Coffee" }])
      expect((await fetch(new URL("/readyz", url))).status).toBe(200)
    } finally {
      await close()
    }
  })
})

describe("programs/promisesHost.ts", () => {
  const open = (answer: string | undefined) =>
    Host.connect(
      program("docs/programs/promisesHostServer.ts").args,
      (question) => Promise.resolve(question === "Who are you? name: " ? answer : undefined)
    )

  it("adds, answers the question of the server, and cancels", async () => {
    await using client = await open("Ada")
    expect(await Host.add(client, 1, 2, AbortSignal.timeout(60_000))).toBe(3)
    expect(textOf(await client.callTool("greet"))).toBe("Hello, Ada!")
    await expect(Host.add(client, 1, 2, AbortSignal.abort())).rejects.toMatchObject({ name: "AbortError" })
  })

  it("declines, and shows the tools until the client is closed", async () => {
    const client = await open(undefined)
    expect(textOf(await client.callTool("greet"))).toBe("Hello!")
    const shown = new Promise<ReadonlyArray<string>>((resolve) => {
      void Host.watch(client, (tools) => {
        resolve(tools)
        void client.close()
      })
    })
    expect(await shown).toEqual(["add", "greet"])
    await client.close()
  })
})

describe("programs/promisesPool.ts", () => {
  const withFile = async (use: (file: string) => Promise<void>) => {
    const folder = mkdtempSync(join(tmpdir(), "skein-promises-"))
    const file = join(folder, "mcp.json")
    const shop = program("docs/programs/promisesHostServer.ts")
    writeFileSync(file, JSON.stringify({ mcpServers: { shop, broken: { command: file } } }))
    try {
      await use(file)
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  it("lists the tools of a configuration, and answers a model and the servers", () =>
    withFile(async (file) => {
      const asked: Array<string> = []
      await using pool = await Pool.open(file, async (question) => {
        asked.push(question)
        return false
      })
      expect(await Pool.inventory(pool)).toEqual(["shop add", "shop greet", expect.stringMatching(/^broken: /)])
      const model: Pool.Model = async ({ tools }) => {
        expect(tools.map(({ name }) => name)).toEqual(["shop_add", "shop_greet"])
        return [
          { id: "1", name: "shop_add", input: { a: 1, b: 2 } },
          { id: "2", name: "shop_greet", input: {} },
          { id: "3", name: "add", input: {} }
        ]
      }
      expect(await Pool.turn(pool, model, AbortSignal.timeout(60_000))).toMatchObject([
        { id: "1", isError: false, content: [{ text: "{\"sum\":3}" }] },
        { id: "2", isError: false, content: [{ text: "Hello!" }] },
        { id: "3", isError: true, content: [{ text: "The toolkit has no tool named \"add\"" }] }
      ])
      expect(asked).toEqual([expect.stringMatching(/^shop: Who are you/)])
    }))
})

describe("programs/promisesContext.ts", () => {
  it("asks from a function without the context as a parameter, in two calls at a time", async () => {
    await using client = await connect(Context.server, { grams: 50 })
    const results = await Promise.all(["sencha", "oolong"].map((tea) => client.callTool("order", { tea })))
    expect(results.map(textOf)).toEqual(["You get 50 g of sencha", "You get 50 g of oolong"])
    expect(Context.getContext).toThrow("outside of a handler")
  })
})

describe("programs/promisesEnds.ts", () => {
  it("closes the desk in each round, and writes nothing at the end of one", async () => {
    await using client = await connect(Desk.server, { people: 3 })
    expect(textOf(await client.callTool("reserve"))).toBe("A table for 3")
    expect(Desk.notes).toEqual(["closed", "closed"])
  })
})

describe("programs/promisesTasks.ts", () => {
  const buy = async (content: Record<string, string> | undefined) => {
    done.length = 0
    const shop = tasks(memoryTasks({ pollInterval: "20 millis" }), [makeBuy("10 millis")])
    await using client = await connect(new AsyncServer({ name: "buying", version: "1.0.0" }).use(shop), content)
    const text = textOf(await client.callTool("buy", { tea: "sencha", cents: 900 }))
    return [text, done.map((line) => line.replace(/ [0-9a-f]{32}$/, ""))]
  }

  it("charges once and ships", async () => {
    expect(await buy({ address: "Elm Street" })).toEqual([
      "sencha is on its way to Elm Street",
      ["charge 900", "ship sencha"]
    ])
  })

  it("pays back if the user gives no address", async () => {
    expect(await buy(undefined)).toEqual([
      "No address was given, and the money is paid back",
      ["charge 900", "refund payment 900"]
    ])
  })
})
