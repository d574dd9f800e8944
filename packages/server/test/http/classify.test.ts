import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import { describe, expect, it } from "@effect/vitest"
import { type Classified, classify as classifyRequest } from "../../src/internal/http/messages/classify.ts"
import { meta } from "./kit.ts"

const latest = "2026-07-28"

interface Case {
  readonly method?: string
  readonly version?: string
  readonly session?: string
  readonly message?: JsonRpc.Inbound
  readonly supported?: ReadonlyArray<Revision.Revision>
}

const classify = ({ message, method = "POST", session, supported = Revision.all, version }: Case): Classified => {
  const headers: Record<string, string | undefined> = { "mcp-protocol-version": version, "mcp-session-id": session }
  return classifyRequest({ method, header: (name) => headers[name] }, message, supported)
}

/** The class of a request, or the status and the code that refuse it. */
const of = (one: Case): string => {
  const classified = classify(one)
  if (typeof classified === "object") return `${classified.status} ${classified.error.code}`
  return classified
}

const list = JsonRpc.request(1, "tools/list", {})
const modern = JsonRpc.request(1, "tools/list", { _meta: meta() })
const ping = JsonRpc.request(1, "ping")
const initialize = JsonRpc.request(1, "initialize", { protocolVersion: "2025-11-25" })
const initialized = JsonRpc.notification("notifications/initialized")
const answer = JsonRpc.success(1, {})
const batch = (...members: ReadonlyArray<JsonRpc.Message>): JsonRpc.Inbound => ({ _tag: "Batch", members })

const onlyModern = Revision.stateless
const onlySessions = Revision.sessionBased

describe("classify", () => {
  it("2026-07-28 · a request carrying modern per-request _meta is served statelessly", () => {
    expect(of({ message: modern, version: latest })).toBe("stateless")
    // Invalid headers are reported in the format of the stateless revision.
    expect(of({ message: modern })).toBe("stateless")
    expect(of({ message: modern, version: "2025-11-25" })).toBe("stateless")
    expect(of({ message: modern, version: "v999.0.0" })).toBe("stateless")
    expect(of({ message: JsonRpc.notification("notifications/x", { _meta: meta() }) })).toBe("stateless")
    expect(of({ message: JsonRpc.request(1, "initialize", { _meta: meta() }), version: latest })).toBe("stateless")
  })

  it("2026-07-28 · an Mcp-Session-Id header on a request: ignore it", () => {
    expect(of({ message: modern, version: latest, session: "s" })).toBe("stateless")
    expect(of({ message: modern, session: "s" })).toBe("stateless")
  })

  it("2026-07-28 · treats a request with only the header as stateless, and reports the missing _meta", () => {
    for (const message of [list, ping, initialized]) {
      expect(of({ message, version: latest })).toBe("stateless")
    }
    expect(of({ message: list, version: latest, session: "s" })).toBe("stateless")
  })

  it("2026-07-28 · the client MUST NOT send JSON-RPC responses; the body MUST be a single request or notification", () => {
    expect(of({ message: answer, version: latest })).toBe("400 -32600")
    expect(of({ message: JsonRpc.failure(1, { code: 1, message: "" }), version: latest })).toBe("400 -32600")
    expect(of({ message: batch(modern), version: latest })).toBe("400 -32600")
  })

  it("2026-07-28 · HTTP GET or DELETE to the MCP endpoint: respond with 405", () => {
    for (const method of ["GET", "DELETE"]) {
      expect(of({ method, version: latest })).toBe("405 -32600")
      expect(of({ method, version: latest, session: "s" })).toBe("405 -32600")
      expect(of({ method, session: "s", supported: onlyModern })).toBe("405 -32600")
      expect(classify({ method, supported: onlyModern })).toMatchObject({ headers: { allow: "POST" } })
    }
  })

  it("2025-11-25 · opens a session for initialize, regardless of its MCP-Protocol-Version header", () => {
    expect(of({ message: initialize })).toBe("session")
    // "An `initialize` request selects legacy semantics": a client that falls back may still send the version that it
    // tried first.
    for (const version of ["2025-11-25", "2025-03-26", "v999.0.0", "2099-01-01", latest]) {
      expect(of({ message: initialize, version })).toBe("session")
    }
    expect(of({ message: initialize, session: "s" })).toBe("session")
  })

  it("2025-11-25 · assigns every other message to the session that Mcp-Session-Id names", () => {
    for (const message of [list, ping, initialized, answer, batch(list, ping)]) {
      expect(of({ message, session: "s" })).toBe("session")
      expect(of({ message, session: "s", version: "2025-03-26" })).toBe("session")
    }
    expect(of({ method: "GET", session: "s" })).toBe("session")
    expect(of({ method: "DELETE", session: "s", version: "2025-11-25" })).toBe("session")
  })

  it("2025-11-25 · requests without an MCP-Session-Id header SHOULD be answered with HTTP 400 Bad Request", () => {
    for (const message of [list, ping, initialized, answer, batch(list)]) expect(of({ message })).toBe("400 -32600")
    expect(of({ method: "GET" })).toBe("400 -32600")
    expect(of({ method: "DELETE" })).toBe("400 -32600")
  })

  it("2025-11-25 · with an invalid or unsupported MCP-Protocol-Version it MUST respond with 400 Bad Request", () => {
    for (const message of [list, initialized, answer, batch(list)]) {
      expect(of({ message, session: "s", version: "1999-01-01" })).toBe("400 -32022")
      expect(of({ message, version: "nonsense" })).toBe("400 -32022")
    }
    expect(of({ method: "GET", session: "s", version: "1999-01-01" })).toBe("400 -32022")
    expect(of({ message: list, session: "s", version: "2025-03-26", supported: ["2025-11-25"] })).toBe("400 -32022")
    expect(classify({ message: list, version: "nonsense" })).toMatchObject({
      error: { data: { supported: Revision.all, requested: "nonsense" } }
    })
  })

  it("refuses a request that carries its own metadata in a batch without headers", () => {
    expect(of({ message: batch(list, modern), session: "s" })).toBe("400 -32600")
    expect(of({ message: batch(list, modern), session: "s", version: "2025-03-26" })).toBe("400 -32600")
  })

  it("reads any protocolVersion of initialize, and quotes only a text", () => {
    const values: ReadonlyArray<unknown> = [
      undefined,
      null,
      1,
      1e308,
      true,
      [],
      ["2025-11-25"],
      {},
      { toString: 1, valueOf: 1 },
      "",
      "2025-11-25"
    ]
    for (const protocolVersion of values) {
      const message = JsonRpc.request(1, "initialize", { protocolVersion })
      expect(of({ message })).toBe("session")
      expect(classify({ message, supported: onlyModern })).toMatchObject({
        status: 400,
        error: { data: { requested: typeof protocolVersion === "string" ? protocolVersion : "" } }
      })
    }
    expect(of({ message: JsonRpc.request(1, "initialize"), supported: onlyModern })).toBe("400 -32022")
  })

  it("2026-07-28 · names the supported versions in the error to initialize on a server of modern versions only", () => {
    expect(classify({ message: initialize, supported: onlyModern })).toMatchObject({
      status: 400,
      error: { code: -32022, data: { supported: [latest], requested: "2025-11-25" } }
    })
    for (const version of ["2025-11-25", latest]) {
      expect(of({ message: initialize, supported: onlyModern, version })).toBe("400 -32022")
    }
    expect(of({ message: list, supported: onlyModern, version: "2025-11-25", session: "s" })).toBe("400 -32022")
    expect(of({ message: list, supported: onlyModern })).toBe("stateless")
    expect(of({ message: answer, supported: onlyModern })).toBe("400 -32600")
  })

  it("refuses headers of the stateless revision on a server of session-based revisions", () => {
    expect(of({ message: list, supported: onlySessions, version: latest })).toBe("400 -32022")
    expect(of({ message: initialize, supported: onlySessions })).toBe("session")
  })

  it("classifies all combinations of header, session, body and verb, with one status for each refusal", () => {
    const versions = [undefined, latest, "2025-11-25", "2024-11-05", "nonsense", ""]
    const messages = [undefined, modern, list, initialize, initialized, answer, batch(list), batch(modern)]
    for (const version of versions) {
      for (const session of [undefined, "s", ""]) {
        for (const message of messages) {
          for (const supported of [Revision.all, onlyModern, onlySessions]) {
            const classified = classify({
              supported,
              ...(version === undefined ? undefined : { version }),
              ...(session === undefined ? undefined : { session }),
              ...(message === undefined ? { method: "GET" } : { message })
            })
            if (typeof classified === "object") expect([400, 405]).toContain(classified.status)
            if (classified === "session") {
              expect(supported).not.toBe(onlyModern)
              expect(message).not.toBe(modern)
              if (session === undefined) expect(message).toBe(initialize)
            }
          }
        }
      }
    }
  })
})
