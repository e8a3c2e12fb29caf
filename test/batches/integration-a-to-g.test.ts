import { defineBatch } from '../kit/batch.ts';

defineBatch('test/integration/**/[a-g]*.test.ts');
