/** Which hostnames are this machine: a table, and properties over each spelling of an address. */
import { describe, expect, it } from "@effect/vitest"
import * as Hostname from "@skein/protocol/Hostname"
import * as Schema from "effect/Schema"

/** Hostnames: whether they are certainly this machine, and whether they may be. */
const table: ReadonlyArray<readonly [hostname: string, isLoopback: boolean, mayBeLocal: boolean]> = [
  ["localhost", true, true],
  ["LOCALHOST", true, true],
  ["LocalHost.", false, true],
  ["tea.localhost", false, true],
  ["a.b.LOCALHOST.", false, true],
  ["localhost.example", false, false],
  ["notlocalhost", false, false],
  ["localhost..", false, false],
  ["127.0.0.1", true, true],
  ["127.0.0.1.", true, true],
  ["127.255.255.255", true, true],
  ["127.1", true, true],
  ["0x7f000001", true, true],
  ["2130706433", true, true],
  ["0177.0.0.1", true, true],
  ["0127.0.0.1", false, false],
  ["127.0.0.256", false, false],
  ["127.0.0.08", false, false],
  ["127.0.0.1.2", false, false],
  ["127.0.0.1.example", false, false],
  ["127.evil.example", false, false],
  ["128.0.0.1", false, false],
  ["[::1]", true, true],
  ["::1", true, true],
  ["0:0:0:0:0:0:0:1", true, true],
  ["[::ffff:127.0.0.1]", true, true],
  ["::FFFF:7F00:1", true, true],
  ["::ffff:0.0.0.0", false, true],
  ["::ffff:128.0.0.1", false, false],
  ["::ffff:7f:1", false, true],
  ["[::2]", false, false],
  ["::1%lo", false, false],
  ["0.0.0.0", false, true],
  ["0", false, true],
  ["0.1.2.3", false, true],
  ["::", false, true],
  ["[::]", false, true],
  ["10.0.0.1", false, false],
  ["192.168.0.1", false, false],
  ["example.com", false, false],
  ["localhost\n", false, false],
  [" localhost", false, false],
  ["localhost:3000", false, false],
  ["user@localhost", false, false],
  ["localhost/", false, false],
  ["localhost\\x", false, false],
  ["", false, false]
]

const hex = (value: number): string => value.toString(16)

/** Each spelling of an address of IPv4 in a URL. */
const spellings = (a: number, b: number, c: number, d: number): ReadonlyArray<string> => {
  const last = (b * 256 + c) * 256 + d
  return [
    `${a}.${b}.${c}.${d}`,
    `0x${hex(a)}.0${b.toString(8)}.${c}.0X${hex(d).toUpperCase()}`,
    `0${a.toString(8)}.${b}.${c * 256 + d}`,
    `${a}.${last}`,
    String(a * 16_777_216 + last),
    `0x${hex(a * 16_777_216 + last)}`,
    `${a}.${b}.${c}.${d}.`,
    `::ffff:${a}.${b}.${c}.${d}`,
    `[::FFFF:${hex(a * 256 + b)}:${hex(c * 256 + d)}]`,
    `0:0:0:0:0:ffff:${hex(a * 256 + b)}:${hex(c * 256 + d)}`
  ]
}

describe("Hostname", () => {
  it.each(table)("%j · certainly this machine: %s, possibly: %s", (hostname, isLoopback, mayBeLocal) => {
    expect([Hostname.isLoopback(hostname), Hostname.mayBeLocal(hostname)]).toEqual([isLoopback, mayBeLocal])
  })

  it("an address of IPv4 counts by its first octet, in each spelling", () => {
    const rests = [[0, 0, 0], [0, 0, 1], [255, 255, 255], [1, 2, 3]] as const
    for (const first of Array.from({ length: 256 }, (_, value) => value)) {
      for (const hostname of rests.flatMap(([b, c, d]) => spellings(first, b, c, d))) {
        expect([hostname, Hostname.isLoopback(hostname)]).toEqual([hostname, first === 127])
        expect([hostname, Hostname.mayBeLocal(hostname)]).toEqual([hostname, first === 127 || first === 0])
      }
    }
  })

  it.prop("every text has an answer, and a certain one is possible", [Schema.String], ([text]) => {
    for (const hostname of [text, `${text}.localhost`, `127.${text}`, `[${text}]`]) {
      if (Hostname.isLoopback(hostname)) expect(Hostname.mayBeLocal(hostname)).toBe(true)
      if (URL.parse(`http://${hostname}`) === null) expect(Hostname.mayBeLocal(hostname)).toBe(false)
    }
  })
})
