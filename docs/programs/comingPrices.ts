/** The prices of a tea shop, in cents per 100 grams. */
export const prices: Readonly<Record<string, number>> = { sencha: 900, oolong: 1200 }
