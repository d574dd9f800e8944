/** Units, and conversions between units of one kind. */

interface Unit {
  readonly kind: "length" | "mass" | "temperature"
  /** A value in this unit, multiplied by `factor` and increased by `offset`, is in the first unit of its kind. */
  readonly factor: number
  readonly offset?: number
}

export const units = {
  m: { kind: "length", factor: 1 },
  km: { kind: "length", factor: 1000 },
  ft: { kind: "length", factor: 0.3048 },
  mi: { kind: "length", factor: 1609.344 },
  kg: { kind: "mass", factor: 1 },
  lb: { kind: "mass", factor: 0.45359237 },
  C: { kind: "temperature", factor: 1 },
  F: { kind: "temperature", factor: 5 / 9, offset: -160 / 9 }
} satisfies Record<string, Unit>

export type UnitName = keyof typeof units

export const unitNames = Object.keys(units) as ReadonlyArray<UnitName>

/** Converts a value, or returns `undefined` if the units are of different kinds. */
export const convert = (value: number, from: UnitName, to: UnitName): number | undefined => {
  const [source, target]: [Unit, Unit] = [units[from], units[to]]
  if (source.kind !== target.kind) return undefined
  return (value * source.factor + (source.offset ?? 0) - (target.offset ?? 0)) / target.factor
}
