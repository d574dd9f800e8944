import { describe, expect, it } from "vitest"
import { required, unavailable } from "../../../packages/sql/test/postgres.ts"
import { replacement } from "./replacement.ts"

const skipped = unavailable !== undefined && !required

describe.skipIf(skipped)(skipped ? `a fleet (${unavailable})` : "a fleet", () => {
  it("loses no call and no stream when nodes join, leave and are replaced", async () => {
    if (unavailable !== undefined) throw new Error(unavailable)
    expect(await replacement({ clients: 9 }, () => {})).toEqual([])
  })
})
