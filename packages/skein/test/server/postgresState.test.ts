/** States in PostgreSQL, which two servers share. */
import { describe, expect, it } from "@effect/vitest"
import { AsyncServer, postgresState, state } from "skein"
import { afterAll } from "vitest"
import { z } from "zod"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { callText, withTransport } from "./kit.ts"

const postgres = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => postgres?.stop())

const cart = state("cart", { schema: z.array(z.string()), initial: [] })

const shop = (url: string, namespace: string) =>
  new AsyncServer({ name: "shop", version: "1.0.0" })
    .use(postgresState({ url, namespace, maxConnections: 2 }))
    .tool("add", { input: z.object({ item: z.string() }) }, ({ item }, { state }) =>
      state(cart).update((items) => [...items, item]))
    .transport({ principal: { id: "ada" } })

describe.skipIf(postgres === undefined)("postgresState", () => {
  it("keeps the state of a user between servers of one namespace", async () => {
    const url = await postgres!.createDatabase()
    const add = (namespace: string, item: string) =>
      withTransport(shop(url, namespace), (client) => callText(client, "add", { item }))
    expect(await add("tea", "sencha")).toBe("[\"sencha\"]")
    expect(await add("tea", "gyokuro")).toBe("[\"sencha\",\"gyokuro\"]")
    expect(await add("coffee", "mocha")).toBe("[\"mocha\"]")
  }, 60_000)

  it("fails the start where it cannot connect", async () => {
    const unreachable = postgresState({ host: "127.0.0.1", port: 1, connectTimeout: 500 })
    const server = new AsyncServer({ name: "shop", version: "1.0.0" }).use(unreachable)
    await expect(withTransport(server.transport(), async () => {})).rejects.toThrow("the server cannot be built")
  })
})
