/** The CORS headers of an endpoint's responses, as the Fetch standard reads them. */
import * as Cors from "@skein/server/Cors"
import { describe, expect, it } from "@effect/vitest"

const origin = "https://app.example.com"

const preflight = (cors: Cors.Cors, headers: { readonly [name: string]: string }, from: string | undefined = origin) =>
  cors.preflight(from, (name) => headers[name])

const list = (value: string | undefined): ReadonlyArray<string> => (value ?? "").split(", ")

describe("a preflight", () => {
  it("allows the verbs of the transport and every header that the five revisions have", () => {
    const answer = preflight(Cors.make(), { "access-control-request-method": "POST" })!
    expect(answer["access-control-allow-origin"]).toBe(origin)
    expect(list(answer["access-control-allow-methods"])).toEqual(["GET", "POST", "DELETE"])
    expect(list(answer["access-control-allow-headers"])).toEqual(expect.arrayContaining([
      "content-type",
      "accept",
      "authorization",
      "dpop",
      "mcp-session-id",
      "mcp-protocol-version",
      "last-event-id",
      "mcp-method",
      "mcp-name"
    ]))
    expect(answer["access-control-max-age"]).toBe("7200")
    expect(list(answer["vary"])).toEqual([
      "Origin",
      "Access-Control-Request-Method",
      "Access-Control-Request-Headers"
    ])
  })

  it("allows the requested Mcp-Param-* headers, and no others", () => {
    const answer = preflight(Cors.make({ allowedHeaders: ["X-Tenant"] }), {
      "access-control-request-method": "POST",
      "access-control-request-headers":
        "mcp-param-region,Mcp-Param-Tenant-Id , x-tenant, x-other, mcp-param-, mcp-param-a b"
    })!
    const allowed = list(answer["access-control-allow-headers"])
    expect(allowed).toEqual(expect.arrayContaining(["mcp-param-region", "mcp-param-tenant-id", "x-tenant"]))
    expect(allowed).not.toContain("x-other")
    expect(allowed).not.toContain("mcp-param-")
    expect(allowed).not.toContain("*")
    expect(allowed.some((name) => name.includes(" "))).toBe(false)
    expect(new Set(allowed).size).toBe(allowed.length)
  })

  it("reads at most 64 of the requested headers", () => {
    const requested = Array.from({ length: 100 }, (_, n) => `mcp-param-${n}`).join(",")
    const answer = preflight(Cors.make(), {
      "access-control-request-method": "POST",
      "access-control-request-headers": requested
    })!
    const allowed = list(answer["access-control-allow-headers"])
    expect(allowed).toContain("mcp-param-63")
    expect(allowed).not.toContain("mcp-param-64")
  })

  it("treats only OPTIONS with an origin and a requested method as a preflight", () => {
    expect(preflight(Cors.make(), {})).toBeUndefined()
    expect(Cors.make().preflight(undefined, () => "POST")).toBeUndefined()
  })

  it("sends the headers for credentials, and private networks only if the options set them", () => {
    const asked = { "access-control-request-method": "POST", "access-control-request-private-network": "true" }
    const quiet = preflight(Cors.make(), asked)!
    expect(quiet).not.toHaveProperty("access-control-allow-credentials")
    expect(quiet).not.toHaveProperty("access-control-allow-private-network")
    const cors = Cors.make({ credentials: true, privateNetwork: true })
    const answer = preflight(cors, asked)!
    expect(answer["access-control-allow-credentials"]).toBe("true")
    expect(answer["access-control-allow-private-network"]).toBe("true")
    expect(answer["access-control-max-age"]).toBe("7200")
    expect(preflight(cors, { "access-control-request-method": "GET" }))
      .not.toHaveProperty("access-control-allow-private-network")
  })
})

describe("a response", () => {
  it("can be read by the page of an allowed origin, with the headers that it needs", () => {
    const headers = Cors.make({ exposedHeaders: ["X-Request-Id", "Retry-After"] }).headers(origin)!
    expect(headers["access-control-allow-origin"]).toBe(origin)
    expect(headers["vary"]).toBe("Origin")
    expect(list(headers["access-control-expose-headers"]))
      .toEqual(["mcp-session-id", "www-authenticate", "dpop-nonce", "retry-after", "x-request-id"])
    expect(headers).not.toHaveProperty("access-control-allow-credentials")
  })

  it("names the origin instead of a star, so that credentials can be sent", () => {
    expect(Cors.make({ credentials: true }).headers(origin)).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-credentials": "true"
    })
  })

  it("adds only `vary: Origin` to a request without an origin", () => {
    expect(Cors.make({ credentials: true }).headers(undefined)).toEqual({ vary: "Origin" })
  })
})
