/** The demo database: some mountains. */
export const demo = `
  CREATE TABLE ranges (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
  );
  CREATE TABLE mountains (
    name TEXT PRIMARY KEY,
    range INTEGER NOT NULL REFERENCES ranges (id),
    metres INTEGER NOT NULL,
    first_ascent INTEGER
  );
  CREATE VIEW unclimbed AS SELECT name, metres FROM mountains WHERE first_ascent IS NULL;

  INSERT INTO ranges VALUES (1, 'Himalaya'), (2, 'Andes'), (3, 'Alps');
  INSERT INTO mountains VALUES
    ('Mount Everest', 1, 8849, 1953),
    ('Kangchenjunga', 1, 8586, 1955),
    ('Gangkhar Puensum', 1, 7570, NULL),
    ('Aconcagua', 2, 6961, 1897),
    ('Chimborazo', 2, 6263, 1880),
    ('Mont Blanc', 3, 4806, 1786),
    ('Matterhorn', 3, 4478, 1865);
`
