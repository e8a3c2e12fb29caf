import { defineBatch } from '../kit/batch.ts';

defineBatch('test/unit/{*.test.ts,[o-z]*/**/*.test.ts}');
