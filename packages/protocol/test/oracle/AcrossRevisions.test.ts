/**
 * A message that was read in one revision can be written in another one: its official schema accepts it, or writing
 * refuses.
 */
import * as Definitions from "./Definitions.ts"
import * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import { expect, it } from "vitest"
import * as Check from "./Check.ts"
import * as Exceptions from "./Exceptions.ts"
import * as JsonSchemaArbitrary from "./JsonSchemaArbitrary.ts"
import * as Spec from "./Spec.ts"

const count = 40

const isMessage = (value: unknown): value is object => typeof value === "object" && value !== null && "method" in value

const bridge = (
  from: Revision.Revision,
  to: Revision.Revision
): { readonly complaints: Array<string>; readonly written: number } => {
  const arbitrary = JsonSchemaArbitrary.make(Exceptions.load(from))
  const document = Exceptions.load(to)
  const complaints: Array<string> = []
  let written = 0
  for (const [name, reader] of Definitions.definitions(from)) {
    const writer = Definitions.definitions(to).get(name)
    if (writer === undefined || writer.kind === "envelope") continue
    // The unions of all methods differ between revisions; the method table decides which ones exist.
    if (/^(Client|Server)(Request|Notification)$/.test(name)) continue
    // The sender of a request of the stateless era writes its own metadata.
    if (to === "2026-07-28" && /Request(Params)?$/.test(name) && !/^(CreateMessage|Elicit|ListRoots)/.test(name)) {
      continue
    }
    for (let seed = 0; seed < count; seed++) {
      const raw = arbitrary.value(name, seed)
      const read = reader.read(raw)
      if (Result.isFailure(read)) continue
      // The sender also writes the envelope, which the schemas include since 2025-11-25.
      const value = writer.kind === "message" && isMessage(read.success)
        ? { jsonrpc: "2.0", id: 1, ...read.success }
        : read.success
      if (Result.isSuccess(writer.write(value))) written++
      const complaint = Check.write(writer, document, value)
      if (complaint === undefined) continue
      complaints.push(`${name}: ${complaint}\nread: ${JSON.stringify(raw)}`)
      break
    }
  }
  return { complaints, written }
}

Spec.describeSpec("writing in another revision", () => {
  for (const from of Revision.all) {
    for (const to of Revision.all) {
      if (from === to) continue
      it(`${from} to ${to} · writes every value that it read in the form of the other revision, or refuses`, () => {
        const { complaints, written } = bridge(from, to)
        expect(complaints).toEqual([])
        expect(written).toBeGreaterThan(1_000)
      })
    }
  }
})
