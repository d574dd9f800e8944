/** `skein/openapi` as its users write it, against an HTTP API in this process. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import type * as Core from "@skein/openapi/OpenApi"
import type * as CoreError from "@skein/openapi/OpenApiError"
import { AsyncServer, type McpRequest, VisibleError } from "skein"
import {
  listOpenApi,
  openApi,
  OpenApiError,
  type OpenApiErrorReason,
  type OpenApiListing,
  type OpenApiOptions,
  type Operation
} from "skein/openapi"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterEach } from "vitest"
import { callText, withClient } from "../server/kit.ts"

const cleanups: Array<() => unknown> = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const parameter = { name: "id", in: "path", required: true, schema: { type: "string" } }

const document = {
  openapi: "3.1.0",
  info: { title: "Pets", version: "1.0.0" },
  paths: {
    "/pets/{id}": {
      get: { operationId: "getPet", tags: ["pets"], parameters: [parameter], responses: {} },
      delete: { operationId: "deletePet", tags: ["pets"], parameters: [parameter], responses: {} }
    },
    "/owners": { get: { operationId: "listOwners", tags: ["owners"], responses: {} } }
  }
}

/** An API that answers with what it has received. */
const startApi = async (): Promise<string> => {
  const server = createServer(({ headers, method, url }, response) => {
    response.setHeader("content-type", "text/plain")
    response.end(`${method} ${url} ${headers.authorization ?? "no token"}`)
  })
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  cleanups.push(() => (server.closeAllConnections(), server.close()))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const serverOf = (given: Parameters<typeof openApi>[0], options?: OpenApiOptions) =>
  new AsyncServer({ name: "pets", version: "1.0.0" }).use(openApi(given, options))

describe("openApi", () => {
  it("makes tools of the chosen operations, with names, headers and credentials of the author", async () => {
    const baseUrl = await startApi()
    const server = serverOf(document, {
      baseUrl,
      include: { tags: ["pets"] },
      exclude: ({ method }) => method === "DELETE",
      name: ({ id }) => id === "getPet" ? "pet" : undefined,
      headers: { authorization: "replaced" },
      credentials: async ({ path }, { caller, method }) => {
        expect([path, method]).toEqual(["/pets/{id}", "tools/call"])
        return { headers: { authorization: `Bearer ${caller.principal?.id ?? "nobody"}` }, query: { v: "2" } }
      }
    })
    await withClient(server, async (client) => {
      expect((await client.listTools()).map(({ name }) => name)).toEqual(["pet"])
      expect(await callText(client, "pet", { id: "a/b" })).toBe("GET /pets/a%2Fb?v=2 Bearer nobody")
    })
  })

  it("shows the model the message of a VisibleError, and no other", async () => {
    const failing = (error: Error) =>
      withClient(
        serverOf(document, {
          baseUrl: "http://127.0.0.1:1",
          credentials: async () => {
            throw error
          }
        }),
        (client) => callText(client, "listOwners")
      )
    expect(await failing(new VisibleError("Sign in to the pet shop first"))).toBe("Sign in to the pet shop first")
    const development = process.env["SKEIN_DEVELOPMENT"]
    process.env["SKEIN_DEVELOPMENT"] = "false"
    cleanups.push(() => {
      if (development === undefined) delete process.env["SKEIN_DEVELOPMENT"]
      else process.env["SKEIN_DEVELOPMENT"] = development
    })
    expect(await failing(new Error("token s3cret"))).not.toContain("s3cret")
  })

  it("makes resources and templates, and requests with another fetch", async () => {
    const urls: Array<string> = []
    const server = serverOf(JSON.stringify(document), {
      baseUrl: "https://pets.example",
      uriPrefix: "pets://shop",
      routeMap: ({ method, path }) => method !== "GET" ? "exclude" : path.includes("{") ? "template" : "resource",
      fetch: async (input) => {
        urls.push(String(input))
        return new Response("a pet", { headers: { "content-type": "text/plain" } })
      }
    })
    await withClient(server, async (client) => {
      expect(await client.readResource("pets://shop/pets/7")).toMatchObject({ contents: [{ text: "a pet" }] })
      expect((await client.listResources()).map(({ uri }) => uri)).toEqual(["pets://shop/owners"])
    })
    expect(urls).toEqual(["https://pets.example/pets/7"])
  })

  it("reads a file, and lists what it would make and what it leaves out", async () => {
    const folder = mkdtempSync(join(tmpdir(), "skein-openapi-"))
    cleanups.push(() => rmSync(folder, { recursive: true }))
    const file = join(folder, "pets.json")
    const broken = { get: { operationId: "broken", parameters: [{ $ref: "#/components/none" }], responses: {} } }
    writeFileSync(file, JSON.stringify({ ...document, paths: { ...document.paths, "/broken": broken } }))
    const options = { baseUrl: "https://pets.example" }
    const { definitions, leftOut } = await listOpenApi(pathToFileURL(file), options)
    expect(definitions.map(({ as, name }) => `${as} ${name}`)).toEqual([
      "tool getPet",
      "tool deletePet",
      "tool listOwners"
    ])
    expect(leftOut).toMatchObject([{ kind: "operation", place: expect.stringContaining("broken") }])
    const error = await listOpenApi(pathToFileURL(file), { ...options, onInvalidOperation: "fail" })
      .catch((error: unknown) => error)
    expect(error instanceof OpenApiError && error.reason).toMatchObject({
      _tag: "InvalidReference",
      reference: "#/components/none"
    })
  })

  it("fails the start of the server with OpenApiError", async () => {
    const error = await serverOf({ swagger: "2.0" }).listen({ port: 0 }).catch((error: unknown) => error)
    expect(error instanceof OpenApiError && error.reason._tag).toBe("UnsupportedVersion")
    const limit = await listOpenApi(document, { baseUrl: "https://pets.example", maxOperations: 1 })
      .catch((error: unknown) => error)
    expect(limit instanceof OpenApiError && limit.reason).toMatchObject({
      _tag: "LimitExceeded",
      limit: "maxOperations"
    })
  })

  it("refuses options of other names and types", () => {
    void (() => {
      // @ts-expect-error a route is one of four
      openApi(document, { routeMap: () => "prompt" })
      // @ts-expect-error a duration has a unit
      openApi(document, { timeout: "3 secs" })
      // @ts-expect-error credentials have headers and query
      openApi(document, { credentials: async () => ({ header: {} }) })
    })
    expectTypeOf<Parameters<NonNullable<OpenApiOptions["credentials"]>>[1]>().toEqualTypeOf<McpRequest>()
  })
})

describe("the types of skein/openapi", () => {
  it("are those of @skein/openapi, in the direction in which the values flow", () => {
    type Own = "fetch" | "credentials"
    expectTypeOf<Omit<OpenApiOptions, Own>>().toExtend<Omit<Core.Options, Own>>()
    expectTypeOf<Exclude<keyof Core.Options, keyof OpenApiOptions>>().toEqualTypeOf<never>()
    expectTypeOf<Core.Operation>().toExtend<Operation>()
    expectTypeOf<keyof Operation>().toEqualTypeOf<keyof Core.Operation>()
    expectTypeOf<Core.Listing>().toExtend<OpenApiListing>()
    expectTypeOf<Awaited<ReturnType<NonNullable<OpenApiOptions["credentials"]>>>>().toExtend<Core.Credentials>()
    expectTypeOf<CoreError.Reason>().toExtend<OpenApiErrorReason>()
    expectTypeOf<CoreError.Reason["_tag"]>().toEqualTypeOf<OpenApiErrorReason["_tag"]>()
  })
})
