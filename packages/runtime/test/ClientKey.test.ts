import { describe, expect, it } from "@effect/vitest"
import * as ClientKey from "@skein/runtime/ClientKey"
import type { RequestContext, SessionPeer } from "@skein/runtime/RequestContext"
import * as Schema from "effect/Schema"

type Sender = Pick<RequestContext, "caller" | "origin" | "peer">

const sender = (of: { readonly principal?: string; readonly address?: string; readonly peer?: object }): Sender => ({
  caller: {
    revision: "2025-11-25",
    info: undefined,
    capabilities: {},
    principal: of.principal === undefined ? undefined : { id: of.principal }
  },
  origin: of.address === undefined ? undefined : { address: of.address },
  peer: of.peer as SessionPeer | undefined
})

describe("ClientKey.networkOf", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["2001:DB8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8::1", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
    ["2001:db8:1:2::", "2001:db8:1:2"]
  ])("returns the network of %s", (address, network) => {
    expect(ClientKey.networkOf(address)).toBe(network)
  })

  it.prop("does not depend on the last 64 bits of an IPv6 address", [
    Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff }))).check(
      Schema.isMinLength(8),
      Schema.isMaxLength(8)
    )
  ], ([groups]) => {
    const hex = groups.map((group) => group.toString(16))
    const neighbour = [...hex.slice(0, 4), "1", "2", "3", "4"]
    expect(ClientKey.networkOf(hex.join(":"))).toBe(ClientKey.networkOf(neighbour.join(":")))
  })
})

describe("ClientKey.ofRequest", () => {
  it("is the principal, wherever it calls from", () => {
    const one = ClientKey.ofRequest(sender({ principal: "ada", address: "192.0.2.7", peer: {} }))
    const other = ClientKey.ofRequest(sender({ principal: "ada", address: "198.51.100.9", peer: {} }))
    expect(one).toBe(other)
    expect(one).not.toBe(ClientKey.ofRequest(sender({ principal: "bob", address: "192.0.2.7" })))
  })

  it("is the network of an anonymous caller, however many sessions it opens", () => {
    const keys = ["2001:db8:1:2::1", "2001:db8:1:2::2"].map((address) =>
      ClientKey.ofRequest(sender({ address, peer: {} }))
    )
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).not.toBe(ClientKey.ofRequest(sender({ address: "2001:db8:1:3::1" })))
  })

  it("is the session of a caller without a principal and an address", () => {
    const peer = {}
    const key = ClientKey.ofRequest(sender({ peer }))
    expect(key).toBe(ClientKey.ofRequest(sender({ peer })))
    expect(key).not.toBe(ClientKey.ofRequest(sender({ peer: {} })))
  })

  it("is undefined without a principal, an address and a session", () => {
    expect(ClientKey.ofRequest(sender({}))).toBeUndefined()
    expect(ClientKey.ofOrigin(undefined)).toBeUndefined()
    expect(ClientKey.ofOrigin({})).toBeUndefined()
  })

  it("does not confuse a principal with an address", () => {
    const principal = ClientKey.ofRequest(sender({ principal: "192.0.2.7" }))
    expect(principal).not.toBe(ClientKey.ofRequest(sender({ address: "192.0.2.7" })))
  })
})
